// SPDX-License-Identifier: BSD-3-Clause
// Overlap: how much of a collective in split phase is hidden behind the caller's own work. Three
// things are timed by turns, a barrier before each: communication alone (start and wait), work
// alone, of about that length, and both together (start, work, wait). What together takes less than
// one after the other, as a share of communication, is the overlap, as in OSU's benchmarks.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study overlap_study();

// Of medians, as measured: not cut off where the three were disturbed differently.
double overlap_percent(double together, double computed, double pure);

}  // namespace unisono::tools::bench
