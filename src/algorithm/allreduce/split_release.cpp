// SPDX-License-Identifier: BSD-3-Clause
// Split and release: the vector is halved s times, and each of the 2^s pieces uses a tree of its
// own, all at the same time. A piece is combined up to its tree's root, which multicasts it. The
// trees are one tree, shifted by one rank each. So a rank that combines much of one piece combines
// little of the others.
//   P = 4, splits 1, fanin 1: the lower half of the vector, and the upper
//   up    1 -> 0, 3 -> 2;  2 -> 0                2 -> 1, 0 -> 3;  3 -> 1
//         (x0 op x1) op (x2 op x3)               (x1 op x2) op (x3 op x0)
//   down  0 => 1 2 3                             1 => 0 2 3
//
// No more pieces than ranks. Steps: ceil(log_{fanin+1} P) + 1. Bytes: n, what roots send staged
// once. Source: vector split of Moody et al., SC 2003, section 5.3: that a piece is exchanged in
// halves first, makes the first levels of its tree. Released as RGM of Kini 2003, section 5.2.2.
#include <algorithm>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/cube.hpp"
#include "algorithm/pattern/fan_in.hpp"

namespace unisono::algorithm::allreduce {

namespace {

class Trees {
 public:
  Trees(const Shape& shape, const Parameters& parameters)
      : shape_(shape),
        fan_in_(parameters.values[1]),
        trees_(1 << std::min(parameters.values[0], pattern::FoldedCube(shape.ranks).dimensions())),
        pieces_(shape.count, trees_) {}

  int count() const { return trees_; }
  // Piece t uses the tree whose root is rank t.
  pattern::FnomialTree tree(int t) const { return pattern::fan_in_tree(shape_.ranks, fan_in_, t); }
  Range input(int t) const { return schedule::input(pieces_.offset(t), pieces_.count(t)); }
  Range output(int t) const { return schedule::output(pieces_.offset(t), pieces_.count(t)); }

  // Slots of a rank: the results of the trees with other roots, then the children's parts, tree by
  // tree.
  SlotId first_child_slot(int rank, int t) const {
    SlotId slot = trees_ - (rank < trees_ ? 1 : 0);
    for (int before = 0; before < t; ++before) slot += tree(before).node(rank).children;
    return slot;
  }

 private:
  const Shape& shape_;
  int fan_in_, trees_;
  pattern::Blocks pieces_;
};

}  // namespace

Schedule split_release(const Shape& shape, const Parameters& parameters, int rank) {
  const Trees trees(shape, parameters);
  Builder b(shape, rank);
  for (int t = 0; t < trees.count(); ++t) {
    if (rank != t) b.slot(t, trees.output(t).count);
  }
  for (int t = 0; t < trees.count(); ++t) {
    const pattern::FnomialTree tree = trees.tree(t);
    for (int child = 0; child < tree.node(rank).children; ++child) {
      b.slot(tree.child(rank, child), trees.output(t).count);
    }
  }
  std::vector<OpId> given;
  given.reserve(static_cast<std::size_t>(trees.count()));
  SlotId next = trees.first_child_slot(rank, 0);
  for (int t = 0; t < trees.count(); ++t) {
    const pattern::TreeNode node = trees.tree(t).node(rank);
    const Value sum = combine_slots(b, {trees.input(t)}, trees.output(t), next, node.children);
    next += node.children;
    if (rank != t) {
      given.push_back(b.send(node.parent,
                             trees.first_child_slot(node.parent, t) + node.child_number, sum.range,
                             {sum.ready}));
    } else {
      given.push_back(multicast_to_others(b, shape.ranks, rank, sum,
                                          [t](int peer) { return slot_of(t, peer); }));
    }
  }
  for (int t = 0; t < trees.count(); ++t) {
    if (rank == t) continue;
    const SlotId slot = slot_of(t, rank);
    b.copy(trees.output(t), b.of(slot), {b.wait(slot), given[static_cast<std::size_t>(t)]});
  }
  if (shape.ranks == 1) b.copy(trees.output(0), trees.input(0));
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
