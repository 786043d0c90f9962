// SPDX-License-Identifier: BSD-3-Clause
// What a collective costs, counted from the schedules of all its ranks: the two columns of the
// table of algorithms, for one shape. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "schedule/schedule.hpp"

namespace unisono::schedule {

struct Cost {
  int steps = 0;              // messages on the longest path
  std::int64_t elements = 0;  // what one rank sends at the most; a multicast counts once

  bool operator==(const Cost&) const = default;
};

// set[r] is the schedule of rank r. Only of schedules that end (check/); others stop the process.
Cost cost(std::span<const Schedule> set);

}  // namespace unisono::schedule
