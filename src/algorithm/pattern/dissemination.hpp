// SPDX-License-Identifier: BSD-3-Clause
// Dissemination (Hensgen, Finkel and Manber 1988; Kini 2003, section 4.1.2): in step s every rank
// sends 2^s ranks upwards, cyclically. After ceil(log2 P) steps everyone has heard, directly or
// not, of everyone, for any P. Pure; any thread.
#pragma once

#include <algorithm>
#include <bit>

namespace unisono::algorithm::pattern {

// ceil(log2 ranks).
inline int dissemination_steps(int ranks) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

// The target and the source of `rank` in step 0 <= step < dissemination_steps(ranks).
inline int dissemination_target(int ranks, int rank, int step) {
  const int distance = 1 << step;
  return rank < ranks - distance ? rank + distance : rank - (ranks - distance);
}
inline int dissemination_source(int ranks, int rank, int step) {
  const int distance = 1 << step;
  return rank >= distance ? rank - distance : rank + (ranks - distance);
}

// The number of targets in a step with up to k of them, at stride, 2 stride, ..., k stride: those
// less than a turn away. The stride grows k+1 times in each step.
inline int dissemination_peers(int ranks, int stride, int k) {
  return std::min(k, (ranks - 1) / stride);
}

}  // namespace unisono::algorithm::pattern
