// SPDX-License-Identifier: BSD-3-Clause
// The end of a reduce-scatter: a rank's own block goes to the output. In place, the output lies
// where the input begins. Data there may still have to be sent, and may overlap the own block of
// the input without being the same. Only the algorithms of this folder use it; any thread.
//
// A shape may be a segment of a call. Blocks before the own one that are empty there may have
// elements in the call, so that the own block lies behind the output although its offset is 0.
#pragma once

#include <span>

#include "algorithm/emit.hpp"

namespace unisono::algorithm::reduce_scatter {

// Whether in place the output may overlap the own block of the input without being the same.
inline bool may_overlap(const schedule::Shape& shape, int rank) {
  const schedule::Block own = schedule::block(shape, rank);
  return rank > 0 && own.offset < own.count;
}

// Copies the finished block to the output, after `sends`: those that read the input.
inline void finish(Builder& b, Value block, std::span<const OpId> sends) {
  b.copy(schedule::output(0, block.range.count), block.range, {block.ready});
  for (const OpId sent : sends) b.also_after(sent);
}

// Combines the last two parts of the own block in the output. All ops that read the input are in
// `sends` or come before one of the parts.
inline void finish(Builder& b, const schedule::Shape& shape, int rank, Value left, Value right,
                   std::span<const OpId> sends) {
  const schedule::Block own = schedule::block(shape, rank);
  const bool reads_input =
      left.range.memory == schedule::Memory::input || right.range.memory == schedule::Memory::input;
  const bool overlaps = reads_input && may_overlap(shape, rank);
  const Range target = overlaps ? b.scratch(own.count) : schedule::output(0, own.count);
  const OpId summed = b.reduce(target, left.range, right.range, {left.ready, right.ready});
  if (overlaps) return finish(b, {target, summed}, sends);
  for (const OpId sent : sends) b.also_after(sent);
}

}  // namespace unisono::algorithm::reduce_scatter
