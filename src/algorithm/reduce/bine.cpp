// SPDX-License-Identifier: BSD-3-Clause
// Bine reduction: the tree of broadcast/bine upwards. Its edges are 1, 1, 3, 5, 11, ... ranks long,
// where those of the usual binomial tree are 1, 2, 4, 8, 16, ....
//
//   P = 8, root 0     step 0: 1 -> 0, 2 -> 3, 5 -> 4, 6 -> 7     step 1: 7 -> 0, 4 -> 3
//                     step 2: 3 -> 0
//
// Steps: ceil(log2 P). Bytes: n.
// The subtrees are not in the order of ranks: the operator has to commute. Surplus ranks give their
// vector to their left neighbour at first. Another root shifts the ranks cyclically.
// Source: De Sensi et al., "Bine Trees", SC 2025.
#include "algorithm/pattern/bine.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::reduce {

Schedule bine(const Shape& shape, const Parameters&, int rank) {
  const pattern::BineCube cube(shape.ranks);
  const int own = pattern::ring_shift(shape.ranks, rank, -shape.root);
  const auto real = [&](int shifted) {
    return pattern::ring_shift(shape.ranks, shifted, shape.root);
  };
  const bool is_outside = cube.outside(own);
  const int joins = is_outside ? 0 : cube.joins(own);
  Builder b(shape, rank, 2 * cube.dimensions() + 3);
  // Slots: one a step, then that of the folded rank.
  for (int d = 0; d < joins; ++d) b.slot(real(cube.partner(own, d)), shape.count);
  const bool takes_folded = !is_outside && cube.fold_partner(own) >= 0;
  if (takes_folded) b.slot(real(cube.fold_partner(own)), shape.count);

  Value sum{schedule::input(0, shape.count)};
  const bool combines = joins > 0 || takes_folded;
  const Range target = own == 0   ? schedule::output(0, shape.count)
                       : combines ? b.scratch(shape.count)
                                  : Range{};
  if (takes_folded) sum = combine_slots(b, sum, target, joins, 1);
  sum = combine_slots(b, sum, target, 0, joins);
  if (own != 0) {
    const int parent = is_outside ? cube.fold_partner(own) : cube.partner(own, joins);
    b.send(real(parent), is_outside ? cube.joins(parent) : joins, sum.range, {sum.ready});
  } else if (shape.ranks == 1) {
    b.copy(target, sum.range);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
