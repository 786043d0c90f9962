// SPDX-License-Identifier: BSD-3-Clause
// Pairwise exchange (recursive doubling): in each dimension of a hypercube two ranks swap what they
// have combined so far, and both combine the two, the lower ranks' part on the left. Both compute
// the same expression, so all ranks end with the same bits. Surplus ranks are folded onto their
// left neighbour and get the result from it.
//
//   P = 5         fold          dimension 0            dimension 1                release
//   0 = pos 0     0 <- 1: 01    0 <> 2: (01)2          0 <> 3: ((01)2)(34)        0 -> 1
//   2 = pos 1                   3 <> 4: 34             2 <> 4: ((01)2)(34)
//   3 = pos 2
//   4 = pos 3     (rank 1 is outside the cube)
//
// Steps: log2 P, or floor(log2 P) + 2 if P is no power of two. Bytes: n per step, at most
// n (floor(log2 P) + 1).
// Source: RPE of Kini 2003, section 5.2.1; adjacent ranks are folded, which keeps the order of
// ranks.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::allreduce {

Schedule pairwise(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const pattern::FoldedCube cube(shape.ranks);
  const int steps = cube.dimensions();
  const int folded = cube.fold_partner(rank);
  Builder b(shape, rank, 3 * steps + 3);
  if (cube.outside(rank)) {
    give_and_take(b, folded, steps, {input}, b.slot(folded, shape.count));
    return std::move(b).take();
  }
  // Slots: one a dimension, then that of the folded rank.
  for (int d = 0; d < steps; ++d) b.slot(cube.partner(rank, d), shape.count);
  Value sum{input};
  if (folded >= 0) sum = combine_slots(b, sum, output, b.slot(folded, shape.count), 1);
  for (int d = 0; d < steps; ++d) {
    const OpId sent = b.send(cube.partner(rank, d), d, sum.range, {sum.ready});
    const OpId arrived = b.wait(d);
    const bool upper = cube.is_upper(rank, d);
    const Range left = upper ? b.of(d) : sum.range;
    const Range right = upper ? sum.range : b.of(d);
    // After the send, because it reads the range overwritten here.
    sum = {output, b.reduce(output, left, right, {arrived, sent})};
  }
  if (folded >= 0) b.send(folded, 0, sum.range, {sum.ready});
  if (shape.ranks == 1) b.copy(output, input);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
