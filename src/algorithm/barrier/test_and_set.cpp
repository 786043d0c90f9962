// SPDX-License-Identifier: BSD-3-Clause
// Test and set. Rank 0 asks all by one multicast whether they have arrived. A rank answers when it
// has arrived and was asked. Answers are combined on their way up a tree in which a parent takes at
// most `fanin` a level; when rank 0 has them, everybody has arrived, and one multicast releases
// all.
//
//   P = 5, fanin = 2: 0 => 1 2 3 4 (question), the tree of gather-release (answers), 0 => 1 2 3 4
//
// Steps: ceil(log_{fanin+1} P) + 2. Bytes: none, signals only.
// A schedule has one question. In the NIC path the question stays with a rank that has not arrived,
// and rank 0 repeats it after growing delays (decision 62).
// Source: the hardware barrier of Petrini et al., HotI 2003, 4.3.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fan_in.hpp"

namespace unisono::algorithm::barrier {

Schedule test_and_set(const Shape& shape, const Parameters& parameters, int rank) {
  const auto tree = pattern::fan_in_tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  const Range signal = schedule::input(0, 0);
  Builder b(shape, rank, 2 * node.children + 3);
  // Slots: question and release (none at the root), then one a child.
  const bool is_root = node.parent < 0;
  if (!is_root) {
    b.slot(0, 0);
    b.slot(0, 0);
  }
  OpId ready = Builder::kNone;
  if (is_root) {
    multicast_to_others(b, shape.ranks, rank, 0, {signal, ready});
  } else {
    ready = b.wait(0);
  }
  for (int child = 0; child < node.children; ++child) {
    ready = b.wait(b.slot(tree.child(rank, child), 0), {ready});
  }
  if (is_root) {
    multicast_to_others(b, shape.ranks, rank, 1, {signal, ready});
  } else {
    b.send(node.parent, node.child_number + (node.parent == 0 ? 0 : 2), signal, {ready});
    b.wait(1);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
