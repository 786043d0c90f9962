// SPDX-License-Identifier: BSD-3-Clause
// When the NIC path is faster than host processes, and when an allgather there joins blocks. The
// limits are measured (docs/explanation/nic-path.md) and stand in the machine file: programs add a
// word at a time and processors a cache line, so the longer the vector the less the saved wake-ups
// matter. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/settings/settings.hpp"
#include "model/machine.hpp"
#include "schedule/shape.hpp"

namespace unisono::select {

// Whether programs compute `combine` (nic::lower_operator()) in software, at the cost of a sum of
// floating-point numbers: sums, products, and all operators of 16-bit formats.
bool nic_adds_floats(std::uint32_t combine);

// The NIC path is faster for vectors up to so many bytes.
std::size_t nic_bytes_that_pay(const model::Machine& machine, schedule::Collective collective,
                               std::uint32_t combine);

// An allgather by the tree is faster than by host processes up to so many bytes of all ranks
// together. One packet carries all blocks to all hosts, where processes send one for each host.
std::size_t nic_bytes_to_gather(const model::Machine& machine, int hosts);

// Otherwise it is faster up to so many bytes of all ranks of a host together.
std::size_t nic_bytes_of_host(const model::Machine& machine);

// Whether a rooted collective is faster by a tree of the NIC path. There, ranks that receive
// something wait for all others, and not so among host processes. But programs forward data that
// one host's processes would otherwise have to forward for others.
bool nic_rooted_pays(schedule::Collective collective, int hosts);

// Whether the root of a short broadcast multicasts its block itself in the NIC path. It does where
// that is possible and `rooted`, UNISONO_NIC_ROOTED, asks for it. By default it does where that is
// faster than the multicast of its process (decision 79).
bool nic_root_multicasts(const model::Machine& machine, base::Toggle rooted, int hosts,
                         bool multicasts);

// The costs of an allgather's blocks at a host's program, in nanoseconds; words have 8 bytes.
struct NicBlockCosts {
  double block = 0, block_word = 0;  // that comes by itself and is kept
  double message = 0;                // whose blocks are kept, joined to others and sent
  double joined = 0, joined_word = 0;
  double step = 0;  // of doubling, after the first

  static NicBlockCosts of(const model::Machine& machine);
};

// Whether an allgather of such blocks joins them to messages of doubling size. The same at all
// ranks of a job.
bool nic_joins_blocks(const NicBlockCosts& costs, int ranks, std::size_t block_bytes);

}  // namespace unisono::select
