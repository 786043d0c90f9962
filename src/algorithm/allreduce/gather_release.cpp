// SPDX-License-Identifier: BSD-3-Clause
// Gather and release: the vectors are combined up a tree in which a parent takes at most `fanin` of
// them a level; rank 0 multicasts the result. With fanin >= P - 1 everyone sends to rank 0, which
// combines in the order of ranks: two steps, and the fewest turns where ranks outnumber cores.
//
//   P = 5, fanin 2                                 P = 5, fanin 4 (flat)
//   up    1 2 -> 0, 4 -> 3;  3 -> 0                1 2 3 4 -> 0
//         ((x0 op x1) op x2) op (x3 op x4)         (((x0 op x1) op x2) op x3) op x4
//   down  0 => 1 2 3 4   (one multicast)           0 => 1 2 3 4
//
// Steps: ceil(log_{fanin+1} P) + 1. Bytes: n, at rank 0 staged once.
// Source: RGM of Kini 2003, section 5.2.2; section 4.5 of Petrini et al., HotI 2003. One process
// computes the result: right for machines that round differently.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fan_in.hpp"

namespace unisono::algorithm::allreduce {

Schedule gather_release(const Shape& shape, const Parameters& parameters, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const auto tree = pattern::fan_in_tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  Builder b(shape, rank, 2 * node.children + 3);

  // Slots: the result (none at rank 0), then one a child.
  const bool is_root = node.parent < 0;
  const SlotId first = is_root ? 0 : 1;
  if (!is_root) b.slot(0, shape.count);
  for (int child = 0; child < node.children; ++child) {
    b.slot(tree.child(rank, child), shape.count);
  }
  const Value sum = combine_slots(b, {input}, output, first, node.children);
  if (is_root) {
    multicast_to_others(b, shape.ranks, rank, 0, sum);
  } else {
    give_and_take(b, node.parent, node.child_number + (node.parent == 0 ? 0 : 1), sum, 0);
  }
  if (shape.ranks == 1) b.copy(output, input);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
