// SPDX-License-Identifier: BSD-3-Clause
// Gather and release. Readiness climbs a tree in which a parent takes at most `fanin` signals a
// level; when it has reached rank 0, everybody has arrived, and one multicast releases all.
//
//   P = 5, fanin = 2: the tree of degree 3     then
//        0                                     0 => 1 2 3 4   (one multicast)
//        |-- 1
//        |-- 2
//        `-- 3 -- 4
//
// Steps: ceil(log_{fanin+1} P) + 1. Bytes: none, signals only.
// A rank without children has two ops, one to report and one to wait; fanin >= P - 1 is flat.
// Source: RGM of Kini 2003, section 4.1.3; the software barrier of Petrini et al., HotI 2003, 4.3.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fan_in.hpp"

namespace unisono::algorithm::barrier {

Schedule gather_release(const Shape& shape, const Parameters& parameters, int rank) {
  const auto tree = pattern::fan_in_tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  const Range signal = schedule::input(0, 0);
  Builder b(shape, rank, 2 * node.children + 2);
  // Slots: the release (none at the root), then one a child.
  const bool is_root = node.parent < 0;
  if (!is_root) b.slot(0, 0);
  OpId gathered = Builder::kNone;
  for (int child = 0; child < node.children; ++child) {
    gathered = b.wait(b.slot(tree.child(rank, child), 0), {gathered});
  }
  if (is_root) {
    multicast_to_others(b, shape.ranks, rank, 0, {signal, gathered});
  } else {
    b.send(node.parent, node.child_number + (node.parent == 0 ? 0 : 1), signal, {gathered});
    b.wait(0);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
