// SPDX-License-Identifier: BSD-3-Clause
// Halving and doubling on a cube: in each step, two partners give each other the half of their
// common piece that the other keeps, and combine; the same steps backwards collect the pieces. The
// cube says who the partners are and which of them is the upper one. Used by build functions of
// this folder.
#pragma once

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::allreduce {

namespace halving {

// One dimension, as this rank sees it.
struct Dimension {
  int partner = -1;
  bool upper = false;
  pattern::HalvingRange kept, given;  // the halves of the common piece
  OpId sent = Builder::kNone;         // the send of the given half
};
inline constexpr int kMaxDimensions = 31;

inline Range part(const Range& range, const pattern::HalvingRange& piece) {
  Range result = range;
  result.offset = piece.offset;
  result.count = piece.count;
  return result;
}

// `Cube`: pattern::FoldedCube, or a class with the same functions. The pieces of two partners are
// the same in each step.
template <typename Cube>
Schedule build(const Shape& shape, const Cube& cube, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const int steps = cube.dimensions();
  const int folded = cube.fold_partner(rank);
  Builder b(shape, rank, 6 * steps + 3);
  if (cube.outside(rank)) {
    give_and_take(b, folded, 2 * steps, {input}, b.slot(folded, shape.count));
    return std::move(b).take();
  }
  // Slots: a dimension's halving, then a dimension's doubling, then the folded rank's.
  Dimension dimensions[kMaxDimensions];
  pattern::HalvingRange piece{0, shape.count};
  for (int d = 0; d < steps; ++d) {
    const bool upper = cube.is_upper(rank, d);
    const pattern::HalvingRange low = piece.lower_half();
    const pattern::HalvingRange high = piece.upper_half();
    dimensions[d] = {cube.partner(rank, d), upper, upper ? high : low, upper ? low : high};
    piece = dimensions[d].kept;
    b.slot(dimensions[d].partner, piece.count);
  }
  for (int d = 0; d < steps; ++d) b.slot(dimensions[d].partner, dimensions[d].given.count);

  Value sum{input};
  if (folded >= 0) sum = combine_slots(b, sum, output, b.slot(folded, shape.count), 1);
  for (int d = 0; d < steps; ++d) {
    Dimension& at = dimensions[d];
    at.sent = b.send(at.partner, d, part(sum.range, at.given), {sum.ready});
    const OpId arrived = b.wait(d);
    const Range own = part(sum.range, at.kept);
    const Range left = at.upper ? b.of(d) : own;
    const Range right = at.upper ? own : b.of(d);
    sum = {output, b.reduce(part(output, at.kept), left, right, {arrived, sum.ready})};
  }
  OpId sent = Builder::kNone;
  for (int d = steps - 1; d >= 0; --d) {
    const Dimension& at = dimensions[d];
    sent = b.send(at.partner, steps + d, part(output, at.kept), {sum.ready, sent});
    const OpId arrived = b.wait(steps + d);
    // After the halving's send, because it reads the range overwritten here.
    sum.ready = b.copy(part(output, at.given), b.of(steps + d), {arrived, at.sent});
  }
  if (folded >= 0) b.send(folded, 0, output, {sum.ready, sent});
  if (shape.ranks == 1) b.copy(output, input);
  return std::move(b).take();
}

}  // namespace halving

}  // namespace unisono::algorithm::allreduce
