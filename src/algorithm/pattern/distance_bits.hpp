// SPDX-License-Identifier: BSD-3-Clause
// Distance bits (Bruck et al. 1997): a block that has to go `distance` ranks upwards, cyclically,
// goes 2^k ranks in step k for each bit k of its distance that is 1. In step k every rank so
// sends, in the order of distances, the blocks of all distances with bit k, and gets as many. Pure;
// any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace unisono::algorithm::pattern {

// The number of distances below `distance` that have bit `step`. It is the index of the block in
// the message of that step. For the number of ranks, it is the length of the message.
inline int distances_with_bit(int distance, int step) {
  const std::int64_t bit = std::int64_t{1} << step;
  const std::int64_t rest = distance % (2 * bit);
  return static_cast<int>(distance / (2 * bit) * bit + std::max<std::int64_t>(0, rest - bit));
}

// The step before `step` in which a block has moved last; -1 if it has not moved.
inline int last_move_before(int distance, int step) {
  const auto below = (std::uint32_t{1} << step) - 1;
  return std::bit_width(static_cast<std::uint32_t>(distance) & below) - 1;
}

// The end of the run of distances that begins with `distance`, which has bit `step`. Blocks that
// arrived next to each other in one message leave next to each other. The runs of a message begin
// with its first distance, 2^step. The next run begins where the one before ends or, if that
// distance has no bit `step`, 2^step further.
inline int run_end(int ranks, int distance, int step) {
  const int last = last_move_before(distance, step);
  const std::int64_t length = last < 0 ? 1 : std::int64_t{1} << last;
  return static_cast<int>(std::min<std::int64_t>(ranks, distance + length));
}

}  // namespace unisono::algorithm::pattern
