// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, then allgather (Rabenseifner). In each dimension of a hypercube, nearest first,
// two ranks give each other the half of their piece that the other keeps, and combine: after log2 P
// steps everyone owns 1/P of the result. The same dimensions backwards collect the pieces. Surplus
// ranks are folded onto their left neighbour. Few steps and little traffic: for long vectors.
//
//   P = 5         fold       dimension 0       dimension 1       dimension 1, 0      release
//   0 = pos 0     0 <- 1     keeps [0, 1/2)    keeps [0, 1/4)    [0, 1/2), all       0 -> 1
//   2 = pos 1                keeps [1/2, 1)    keeps [1/2, 3/4)  [1/2, 1), all
//   3 = pos 2                keeps [0, 1/2)    keeps [1/4, 1/2)  [0, 1/2), all
//   4 = pos 3                keeps [1/2, 1)    keeps [3/4, 1)    [1/2, 1), all
//
// Steps: 2 log2 P, or 2 floor(log2 P) + 2 if P is no power of two.
// Bytes: 2 n (1 - 1/M), M the largest power of two <= P, and n more for the folding.
// Nearest first, the lower part on the left: the order of ranks is kept. One rank finishes each
// element, so all ranks get the same bits. Empty pieces are sent too, as signals.
// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::allreduce {

namespace {

// One dimension, as this rank sees it.
struct Dimension {
  int partner = -1;
  bool upper = false;
  pattern::Piece kept, given;  // the halves of the common piece
  OpId sent = Builder::kNone;  // the send of the given half
};
constexpr int kMaxDimensions = 31;

Range part(const Range& range, const pattern::Piece& piece) {
  Range result = range;
  result.offset = piece.offset;
  result.count = piece.count;
  return result;
}

}  // namespace

Schedule reduce_scatter_allgather(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const pattern::FoldedCube cube(shape.ranks);
  const int steps = cube.dimensions();
  const int folded = cube.fold_partner(rank);
  Builder b(shape, rank, 6 * steps + 3);
  if (cube.outside(rank)) {
    give_and_take(b, folded, 2 * steps, {input}, b.slot(folded, shape.count));
    return std::move(b).take();
  }
  // Slots: a dimension's halving, then a dimension's doubling, then the folded rank's.
  Dimension dimensions[kMaxDimensions];
  pattern::Piece piece{0, shape.count};
  for (int d = 0; d < steps; ++d) {
    const bool upper = cube.is_upper(rank, d);
    const pattern::Piece low = piece.lower_half();
    const pattern::Piece high = piece.upper_half();
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

}  // namespace unisono::algorithm::allreduce
