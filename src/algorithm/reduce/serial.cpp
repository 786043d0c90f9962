// SPDX-License-Identifier: BSD-3-Clause
// Serial reduction: everyone sends to the root, which combines all vectors in the order of ranks,
// ((x0 op x1) op x2) op ..., whichever rank is the root. All messages travel at once; the root's
// work grows with P. The building block of the trees, and the measurement from which the model's
// L, r and c are fitted.
//
//   P = 5, root 2:   0 1 3 4 -> 2
//                    2: s = x0 op x1, out = s op x2, out = out op x3, out = out op x4
//
// Steps: 1. Bytes: n.
// The ranks below the root are combined in scratch memory, because in place the output is the
// root's own input, which comes only after them.
// Source: Moody et al., SC 2003, section 5.1.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::reduce {

Schedule serial(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  if (rank != shape.root) {
    Builder b(shape, rank, 1);
    b.send(shape.root, rank < shape.root ? rank : rank - 1, input);
    return std::move(b).take();
  }
  Builder b(shape, rank, 2 * shape.ranks);
  for (int source = 0; source < shape.ranks; ++source) {
    if (source != rank) b.slot(source, shape.count);
  }
  if (shape.ranks == 1) b.copy(output, input);
  const Range scratch = rank > 1 ? b.scratch(shape.count) : Range{};
  combine_around(b, {input}, output, scratch, 0, rank, shape.ranks - 1 - rank);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
