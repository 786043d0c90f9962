// SPDX-License-Identifier: BSD-3-Clause
// Overlap: how much of a split-phase collective is hidden behind the caller's own work. Three
// things are timed by turns, a barrier before each: communication alone (start and wait), work
// alone, of about that length, and both together (start, work, wait). The overlap is the time saved
// by doing both together, as a share of communication, as in OSU's benchmarks.
#pragma once

#include "bench/study/study.hpp"

namespace unisono::tools::bench {

Study overlap_study();

// Computed from medians as measured. Results outside 0 to 100 are kept; they show that the three
// were disturbed differently.
double overlap_percent(double together, double computed, double pure);

}  // namespace unisono::tools::bench
