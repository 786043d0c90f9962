// SPDX-License-Identifier: BSD-3-Clause
// Broadcast down an f-nomial tree: every rank that holds the vector sends it to up to f - 1 ranks a
// phase, the largest subtree first. A rank forwards straight from the slot in which the vector came
// and copies it to its output afterwards, so no copy delays a rank further down.
//
//   P = 5, root 0, degree 2        degree 4
//        0                            0
//        |-- 4                        |-- 4
//        |-- 2 -- 3                   |-- 3
//        `-- 1                        |-- 2
//                                     `-- 1
//
// Steps: ceil(log_f P). Bytes: (f-1) ceil(log_f P) n at the root.
// Another root shifts the ranks cyclically.
// Source: Moody et al., SC 2003, section 5.2 and appendix A (the tree, expanded instead of
// collapsed); the software tree of Petrini et al., HotI 2003, section 4.2.
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::broadcast {

Schedule fnomial(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0], shape.root);
  const pattern::TreeNode node = tree.node(rank);
  Builder b(shape, rank, node.children + 2);
  Value vector{schedule::input(0, shape.count)};
  if (rank != shape.root) {
    const SlotId slot = b.slot(node.parent, shape.count);
    vector = {b.of(slot), b.wait(slot)};
  }
  for (int child = node.children - 1; child >= 0; --child) {
    b.send(tree.child(rank, child), 0, vector.range, {vector.ready});
  }
  if (rank != shape.root) b.copy(schedule::output(0, shape.count), vector.range, {vector.ready});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
