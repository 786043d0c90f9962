// SPDX-License-Identifier: BSD-3-Clause
// Pairwise exchange barrier (recursive doubling). Ranks meet in the dimensions of a hypercube over
// the largest power of two; a pair's groups then know of one another. Surplus ranks are folded:
// they report to their neighbour, who plays for both, and are released by it at the end.
//
//   P = 5         fold       dimension 0     dimension 1     release
//   0 = pos 0     0 <- 1     0 <> 2          0 <> 3          0 -> 1
//   2 = pos 1                3 <> 4          2 <> 4
//   3 = pos 2
//   4 = pos 3     (rank 1 is outside the cube)
//
// Steps: log2 P, or floor(log2 P) + 2 if P is no power of two. Bytes: none, signals only.
// Source: RPE of Kini 2003, section 4.1.1; adjacent ranks are folded, see pattern/cube.hpp.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::barrier {

Schedule pairwise(const Shape& shape, const Parameters&, int rank) {
  const pattern::FoldedCube cube(shape.ranks);
  const int steps = cube.dimensions();
  const int folded = cube.fold_partner(rank);
  const Range signal = schedule::input(0, 0);
  Builder b(shape, rank, 2 * steps + 2);
  if (cube.outside(rank)) {
    const SlotId release = b.slot(folded, 0);
    b.send(folded, steps, signal);
    b.wait(release);
    return std::move(b).take();
  }
  // Slots: one a dimension, then that of the folded rank.
  for (int d = 0; d < steps; ++d) b.slot(cube.partner(rank, d), 0);
  OpId sent = Builder::kNone;
  OpId arrived = folded < 0 ? Builder::kNone : b.wait(b.slot(folded, 0));
  for (int d = 0; d < steps; ++d) {
    sent = b.send(cube.partner(rank, d), d, signal, {arrived, sent});
    arrived = b.wait(d);
  }
  if (folded >= 0) b.send(folded, 0, signal, {arrived, sent});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
