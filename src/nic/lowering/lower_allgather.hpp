// SPDX-License-Identifier: BSD-3-Clause
// Lowering of an allgather: derives from a schedule the source of each rank's block at a rank's
// NIC, and the ranks to which the NIC sends it on. The NIC program sends each block on in a packet
// of its own as soon as it arrives. It neither joins nor splits blocks, and does not wait for one
// before it sends another. So it keeps a schedule's paths, but not its order in time. Any other
// schedule is refused, and the message names the op that does not fit. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::nic {

// The way of one origin's block at a rank.
struct Route {
  int from = -1;             // rank that sends it; -1: it is the own one
  std::vector<int> targets;  // ranks that it is forwarded to, in order

  bool operator==(const Route&) const = default;
};

// A rank's part in an allgather.
struct Routes {
  int rank = 0;
  int ranks = 0;
  std::vector<Route> of;  // by origin

  bool operator==(const Routes&) const = default;
};

// No block may be empty. The routes hold for blocks of any length.
base::Result<Routes> lower_allgather(const schedule::Schedule& schedule);

// Whether the routes of ranks 0 .. P-1 bring each block to every rank once. Each rank must get it
// from a rank that sends it there, and every path must begin at its origin. Some schedules can be
// lowered at some ranks only, so a group lowers those of all ranks before it relies on any.
base::Status check_routes(std::span<const Routes> all);

}  // namespace unisono::nic
