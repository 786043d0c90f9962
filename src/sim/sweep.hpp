// SPDX-License-Identifier: BSD-3-Clause
// The sweep: when each rank ends if ranks run their steps in a fixed order and messages do not
// disturb each other. Then time is a longest path: sums and maxima, without a queue. Where all
// ranks run one program, step after step is done for all of them at once, as operations on arrays
// over the ranks. Pure; any thread.
#pragma once

#include <span>

#include "sim/program/program.hpp"

namespace unisono::sim {

// skew[r]: the start of rank r; empty: all at 0. The schedules must terminate (check/); others stop
// the process.
SimulationResult sweep(const ProgramSet& programs, std::span<const Time> skew = {});

// The two ways of it, which agree: rank by rank, each until a message is missing; and step by step,
// for uniform programs.
SimulationResult sweep_ranks(const ProgramSet& programs, std::span<const Time> skew);
SimulationResult sweep_steps(const ProgramSet& programs, std::span<const Time> skew);

}  // namespace unisono::sim
