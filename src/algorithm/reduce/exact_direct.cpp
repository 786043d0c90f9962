// SPDX-License-Identifier: BSD-3-Clause
// Exact direct reduction: everyone sends its vector to the root, which sums all of them in one
// step. No partial sums exist, so a floating-point sum is rounded once.
//
//   P = 4, root 1:   0 2 3 -> 1    1: x0 + x1 + x2 + x3
//
// Steps: 1. Bytes: n. The root receives (P-1) n.
// Source: Moody et al., SC 2003, section 5.1, with the exact sums of Collange, Defour, Graillat and
// Iakymchuk 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"

namespace unisono::algorithm::reduce {

Schedule exact_direct(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  Builder b(shape, rank, shape.ranks);
  if (rank != shape.root) {
    b.send(shape.root, slot_of(rank, shape.root), input);
    return std::move(b).take();
  }
  for (int source = 0; source < shape.ranks; ++source) {
    if (source != rank) b.slot(source, shape.count);
  }
  exact::sum_up_to(b, schedule::output(0, shape.count), input, rank, shape.ranks - 1,
                   [&](int source) { return slot_of(source, rank); }, {});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
