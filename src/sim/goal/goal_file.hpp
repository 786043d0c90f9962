// SPDX-License-Identifier: BSD-3-Clause
// GOAL text, the schedules of LogGOPSim, as traces that compile to programs. The k-th send of a
// sender, a receiver and a tag meets the k-th reception of these. A rank runs its operations one
// after another, in the order of the file, so a file whose dependencies ask for another order is
// refused, as are several processors of a rank and messages from anyone. Refusals name file, line
// and what was expected. Control path; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "sim/program/program.hpp"

namespace unisono::sim {

// By rank. They end: a set that deadlocks is refused.
base::Result<std::vector<Trace>> parse_goal(std::string_view text, std::string_view file);

}  // namespace unisono::sim
