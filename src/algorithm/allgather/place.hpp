// SPDX-License-Identifier: BSD-3-Clause
// The positions of the ranks' blocks, as ranges. Blocks may differ in length and be empty, so every
// range of an allgather comes from here and is never computed by multiplication. Only the files of
// this folder use it; any thread.
#pragma once

#include "algorithm/algorithm.hpp"
#include "schedule/op.hpp"

namespace unisono::algorithm::allgather {

// The input of `rank`.
inline schedule::Range own_block(const Shape& shape, int rank) {
  return schedule::input(0, schedule::block(shape, rank).count);
}

// Its place in everyone's output.
inline schedule::Range place(const Shape& shape, int rank) {
  const schedule::Block block = schedule::block(shape, rank);
  return schedule::output(block.offset, block.count);
}

// The ranges of ranks first .. first + ranks - 1; the last must be below the number of ranks.
inline schedule::Range place(const Shape& shape, int first, int ranks) {
  const schedule::Block blocks = schedule::neighbouring_blocks(shape, first, ranks);
  return schedule::output(blocks.offset, blocks.count);
}

inline schedule::Range whole(const Shape& shape) {
  return schedule::output(0, schedule::whole_count(shape));
}

}  // namespace unisono::algorithm::allgather
