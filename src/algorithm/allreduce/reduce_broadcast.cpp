// SPDX-License-Identifier: BSD-3-Clause
// Reduce, then broadcast: the vectors are combined up an f-nomial tree to rank 0, and the result
// goes down the same tree by sends. One rank computes each element, so all ranks get the same bits
// even where machines round differently; no multicast is needed.
//
//   P = 5, degree 2
//   up    1 -> 0, 3 -> 2;  2 -> 0;  4 -> 0        ((x0 op x1) op (x2 op x3)) op x4
//   down  0 -> 4, 0 -> 2, 0 -> 1;  2 -> 3         each forwards from its slot, then copies
//
// Steps: 2 ceil(log_f P). Bytes: (f-1) ceil(log_f P) n at rank 0.
// Source: Moody et al., SC 2003, section 5.2 (the tree); section 4.5 of Petrini et al., HotI 2003
// (collect up a tree, then distribute).
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fnomial.hpp"

namespace unisono::algorithm::allreduce {

Schedule reduce_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  Builder b(shape, rank, 3 * node.children + 3);

  // Slots: the result (none at rank 0), then one a child.
  const bool is_root = node.parent < 0;
  const SlotId first = is_root ? 0 : 1;
  if (!is_root) b.slot(node.parent, shape.count);
  for (int child = 0; child < node.children; ++child) {
    b.slot(tree.child(rank, child), shape.count);
  }
  const Value sum = combine_slots(b, {input}, output, first, node.children);
  Value result = sum;
  OpId given = Builder::kNone;
  if (!is_root) {
    const SlotId parent_slot = node.child_number + (node.parent == 0 ? 0 : 1);
    given = b.send(node.parent, parent_slot, sum.range, {sum.ready});
    result = {b.of(0), b.wait(0)};
  }
  for (int child = node.children - 1; child >= 0; --child) {
    b.send(tree.child(rank, child), 0, result.range, {result.ready});
  }
  // After the send upwards, because it reads the output, or the input that may lie there.
  if (!is_root) b.copy(output, result.range, {result.ready, given});
  if (shape.ranks == 1) b.copy(output, input);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
