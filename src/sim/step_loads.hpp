// SPDX-License-Identifier: BSD-3-Clause
// The loads that each step of a collective puts on the links of a fat tree. A step holds the
// messages with equally many messages before them on their longest path; they are taken to be under
// way at the same time. Deterministic by seed; pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/cost.hpp"
#include "topology/fat_tree/link_loads.hpp"
#include "topology/fat_tree/placement.hpp"

namespace unisono::sim {

struct StepLoads {
  int step = 0;
  std::int64_t messages = 0;
  // Messages on the most loaded link of each level, up and down.
  std::vector<int> up, down;
  // Two messages that some choice of ways up brings into one link; none: there is no such choice.
  std::optional<topology::fat_tree::Congestion> congestion;
};

struct ScheduleLoads {
  std::vector<StepLoads> steps;
  std::vector<int> peak;  // by directed link: its messages in the step with most of them
};

// `messages` by step, as schedule::messages() gives them, between ranks of the placement.
ScheduleLoads schedule_loads(std::span<const schedule::Message> messages,
                             const topology::fat_tree::Placement& placement,
                             topology::fat_tree::Ascent ascent, std::uint64_t seed);

}  // namespace unisono::sim
