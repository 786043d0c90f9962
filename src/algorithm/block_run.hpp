// SPDX-License-Identifier: BSD-3-Clause
// BlockRun: the blocks of neighbouring ranks, where rank 0 follows the last rank. In the vector of
// all blocks they are one part or, if they go beyond the last rank, two. In a message, the blocks
// of a subtree lie one after another, beginning with that of its root. Only algorithm files use it;
// any thread.
#pragma once

#include <algorithm>

#include "algorithm/emit.hpp"

namespace unisono::algorithm {

struct BlockRun {
  schedule::Block upper;  // up to the last rank
  schedule::Block lower;  // from rank 0 on; empty if the run ends before

  std::int64_t count() const { return upper.count + lower.count; }
  bool is_one_part() const { return upper.count == 0 || lower.count == 0; }
  schedule::Block only_part() const { return upper.count == 0 ? lower : upper; }

  // One part, which may be empty, or two, which are not.
  template <typename Visit>
  void for_each_part(const Visit& visit) const {
    visit(is_one_part() ? only_part() : upper);
    if (!is_one_part()) visit(lower);
  }
};

// `ranks` blocks from that of `first` on, 0 <= first < P, 0 <= ranks <= P.
inline BlockRun block_run(const schedule::Shape& shape, int first, int ranks) {
  const int above = std::min(ranks, shape.ranks - first);
  return {schedule::neighbouring_blocks(shape, first, above),
          schedule::neighbouring_blocks(shape, 0, ranks - above)};
}

// The first `count` elements of a range, and those behind its first `count`.
inline Range first_of(Range range, std::int64_t count) {
  range.count = count;
  return range;
}
inline Range behind(Range range, std::int64_t count) {
  range.offset += count;
  range.count -= count;
  return range;
}

// Whether the second range lies directly behind the first, in the same memory.
inline bool follows(const Range& first, const Range& second) {
  return first.memory == second.memory && first.slot == second.slot &&
         first.offset + first.count == second.offset;
}

}  // namespace unisono::algorithm
