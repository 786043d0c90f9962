// SPDX-License-Identifier: BSD-3-Clause
// When the NIC path is faster than host processes, and when an allgather there joins blocks. The
// limits are measured (docs/explanation/nic-path.md): programs add a word at a time and processors
// a cache line, so the longer the vector the less the saved wake-ups matter. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schedule/shape.hpp"

namespace unisono::select {

// Whether `combine` (nic::lower_operator()) is a sum of floating-point numbers, which programs
// compute in software.
bool nic_adds_floats(std::uint32_t combine);

// The NIC path is faster up to this number of packets. A broadcast there is a reduction, to which
// every host contributes; host processes need one multicast for it.
std::uint32_t nic_packets_that_pay(schedule::Collective collective, std::uint32_t combine);

// Whether a rooted collective is faster there. In the NIC path all ranks wait for its end; among
// host processes, ranks that receive nothing return at once. But programs forward data that one
// host's processes would otherwise have to forward for others.
bool nic_rooted_pays(schedule::Collective collective, int hosts);

// Whether an allgather of such blocks joins them to messages of doubling size. The same at all
// ranks.
bool nic_joins_blocks(int ranks, std::size_t block_bytes);

}  // namespace unisono::select
