// SPDX-License-Identifier: BSD-3-Clause
// Lowering of an allgather: where a rank's NIC takes each rank's block from and whom it sends it on
// to, read off a schedule. The NIC program sends blocks on as they came, one to a packet, as soon
// as they come; it neither joins nor splits them, and does not wait for one before it sends
// another. So a schedule's paths are kept and its pace is not. A schedule that does anything else
// is refused, and the message says which op it is that does not fit. Pure; any thread.
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

// No block may be empty. The routes serve blocks of any length.
base::Result<Routes> lower_allgather(const schedule::Schedule& schedule);

// Whether the routes of ranks 0 .. P-1 bring each block to every rank once: each hears it from a
// rank that sends it there, and every way begins at its origin. Some schedules can be lowered at
// some ranks only, so a group lowers those of all ranks before it relies on any.
base::Status check_routes(std::span<const Routes> all);

}  // namespace unisono::nic
