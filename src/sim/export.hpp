// SPDX-License-Identifier: BSD-3-Clause
// What other programs read: schedules as GOAL text for LogGOPSim, and timelines in the trace format
// of Chrome and Perfetto. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "sim/events.hpp"

namespace unisono::sim {

// Each rank's steps in their order, each after the one before. A message's tag is the receiver's
// slot. LogGOPSim spends o on a reception, where a machine file has r(m): times agree where these
// do.
std::string goal_text(const ProgramSet& programs);

// A track for each rank, a slice for each step, in the order of their begin.
std::string timeline_json(std::vector<Activity> activities);

}  // namespace unisono::sim
