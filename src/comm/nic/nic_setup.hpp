// SPDX-License-Identifier: BSD-3-Clause
// How a new communicator gets a NIC path. The abilities of hosts are known since the start of the
// job. So ranks communicate about it only if all hosts have a NIC path. Then all join, all try a
// broadcast, and all use it or none does. Control path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "comm/members.hpp"
#include "comm/nic/nic_path.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

// An allgather among the members, of so many bytes of each.
using NicExchange = std::function<base::Status(const void* own, void* all, std::int64_t bytes)>;

// Collective. nullptr: there is none, which the log says. Errors: those of the exchange.
base::Result<std::unique_ptr<NicPath>> agree_on_nic(const Members& members, const Segment& segment,
                                                    bool is_world, const NicExchange& exchange);

}  // namespace unisono::comm
