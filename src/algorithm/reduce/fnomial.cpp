// SPDX-License-Identifier: BSD-3-Clause
// Reduction up an f-nomial tree: in phase k a parent takes the vectors of up to f - 1 children,
// each the result of a subtree of consecutive ranks, combines them on the right of its own, and
// sends the sum of all phases to its parent. Wide trees have few steps, narrow ones little work a
// rank.
//
//   P = 5, root 0, degree 2:   phase 0: 1 -> 0, 3 -> 2    phase 1: 2 -> 0    phase 2: 4 -> 0
//                              ((x0 op x1) op (x2 op x3)) op x4
//   P = 5, root 0, degree 4:   phase 0: 1 2 3 -> 0        phase 1: 4 -> 0
//
// Another root shifts the ranks cyclically, and with them the order of combination. Where that
// matters (shape.ordered) the tree stays at rank 0, which sends the result on to the root.
// Steps: ceil(log_f P); one more if ordered and the root is not 0. Bytes: n.
// Source: Moody et al., SC 2003, section 5.2 and appendix A.
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::reduce {

Schedule fnomial(const Shape& shape, const Parameters& parameters, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const bool is_root = rank == shape.root;
  const bool sends_on = shape.ordered && shape.root != 0;
  const int top = sends_on ? 0 : shape.root;
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0], top);
  const pattern::TreeNode node = tree.node(rank);
  Builder b(shape, rank, 2 * node.children + 3);

  // Slots: the result that is sent on (at its receiver only), then one a child.
  const SlotId first = sends_on && is_root ? 1 : 0;
  if (first == 1) b.slot(top, shape.count);
  for (int child = 0; child < node.children; ++child) {
    b.slot(tree.child(rank, child), shape.count);
  }
  Value sum{input};
  if (node.children > 0) {
    const Range target = is_root ? output : b.scratch(shape.count);
    sum = combine_slots(b, sum, target, first, node.children);
  }
  const SlotId parent_slot = node.child_number + (sends_on && node.parent == shape.root ? 1 : 0);
  if (is_root && sends_on) {
    give_and_take(b, node.parent, parent_slot, sum, 0);
  } else if (is_root) {
    if (node.children == 0) b.copy(output, input);
  } else if (rank == top) {
    b.send(shape.root, 0, sum.range, {sum.ready});
  } else {
    b.send(node.parent, parent_slot, sum.range, {sum.ready});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
