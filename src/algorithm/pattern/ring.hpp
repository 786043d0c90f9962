// SPDX-License-Identifier: BSD-3-Clause
// The ring: everyone sends to the next rank and receives from the one before, and what arrives in a
// step leaves in the next. So the block that passes rank r in step s is a function of r - s alone.
// Pure; any thread.
#pragma once

namespace unisono::algorithm::pattern {

inline int ring_next(int ranks, int rank) { return rank + 1 == ranks ? 0 : rank + 1; }
inline int ring_previous(int ranks, int rank) { return rank == 0 ? ranks - 1 : rank - 1; }

// The rank `distance` places on, backwards if negative; -ranks < distance < ranks.
inline int ring_shift(int ranks, int rank, int distance) {
  if (distance < 0) return rank >= -distance ? rank + distance : rank + distance + ranks;
  return rank < ranks - distance ? rank + distance : rank - (ranks - distance);
}

// The block that `rank` sends in step 0 <= step < ranks when everyone starts with its own; it
// receives the block of the next step.
inline int ring_block(int ranks, int rank, int step) {
  return rank >= step ? rank - step : rank - step + ranks;
}

}  // namespace unisono::algorithm::pattern
