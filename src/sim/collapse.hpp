// SPDX-License-Identifier: BSD-3-Clause
// Class collapse: ranks that no message can tell apart are simulated once. Without noise they do
// the same at the same time. In a circulant or butterfly schedule all ranks are one class, and the
// time of a simulation does not depend on their number. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace unisono::sim {

// The time of all ranks that are alike (ProgramSet::alike), from one of them. by_rank stays empty.
SimulationResult collapse_alike(const ProgramSet& programs);

// Classes are parted until the messages of a class come from like steps of like classes.
struct RankClasses {
  std::vector<std::uint32_t> of_rank;
  std::vector<int> first_rank;  // of each class
};
RankClasses find_classes(const ProgramSet& programs, std::span<const Time> skew = {});

// One rank of each class is simulated; by_rank has the times of all.
SimulationResult collapse(const ProgramSet& programs, std::span<const Time> skew = {});

}  // namespace unisono::sim
