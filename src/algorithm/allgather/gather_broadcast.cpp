// SPDX-License-Identifier: BSD-3-Clause
// Gather, then broadcast: blocks climb an f-nomial tree, each rank passing on those of its subtree,
// which lie side by side, in one message; rank 0 then sends the whole vector down the same tree. It
// is gather-release where there is no multicast. A rank forwards the vector from the slot in which
// it came and copies it afterwards.
//
//   P = 5, degree 2
//   up    1 -> 0, 3 -> 2;  2 -> 0 (2 3);  4 -> 0
//   down  0 -> 4, 0 -> 2, 0 -> 1;  2 -> 3           the whole vector
//
// Steps: 2 ceil(log_f P). Bytes: (f-1) ceil(log_f P) P m at rank 0: for short blocks.
// Source: Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007 (for short vectors, a
// gather and a broadcast along minimum spanning trees), with the trees of Moody et al., SC 2003.
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fnomial.hpp"

namespace unisono::algorithm::allgather {

Schedule gather_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  const bool is_root = node.parent < 0;
  Builder b(shape, rank, 3 * node.children + 4);

  // Slots: the whole vector (none at rank 0), then one a child.
  if (!is_root) b.slot(node.parent, whole(shape).count);
  Value vector{own_block(shape, rank)};
  if (is_root || node.children > 0) {
    vector.ready = b.copy(place(shape, rank), vector.range);
    vector.range = place(shape, rank, tree.subtree(rank));
  }
  for (int number = 0; number < node.children; ++number) {
    const int child = tree.child(rank, number);
    const Range blocks = place(shape, child, tree.subtree(child));
    const SlotId slot = b.slot(child, blocks.count);
    const OpId arrived = b.wait(slot);
    vector.ready = b.copy(blocks, b.of(slot), {arrived, vector.ready});
  }
  OpId given = Builder::kNone;
  if (!is_root) {
    const SlotId parent_slot = node.child_number + (node.parent == 0 ? 0 : 1);
    given = b.send(node.parent, parent_slot, vector.range, {vector.ready});
    vector = {b.of(0), b.wait(0)};
  }
  for (int child = node.children - 1; child >= 0; --child) {
    b.send(tree.child(rank, child), 0, vector.range, {vector.ready});
  }
  // After the send upwards, because it reads the output, or the input that may lie there.
  if (!is_root) b.copy(whole(shape), vector.range, {vector.ready, given});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
