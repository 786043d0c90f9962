// SPDX-License-Identifier: BSD-3-Clause
// Pipelined reduction up a tree of pattern/in_order.hpp: the vector is cut into segments, and a
// rank sends its sum of a segment to its parent while the next segment is on its way to it. Where
// the top is not the root, it sends the result on. Used by one build function and dropped.
#pragma once

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/in_order.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::reduce {

template <typename Tree>
class Pipeline {
 public:
  // Rank t of the tree is rank t + shift, cyclically.
  Pipeline(const Shape& shape, const Tree& tree, int shift, int segments, int rank)
      : shape_(shape),
        tree_(tree),
        shift_(shift),
        rank_(rank),
        segments_(pattern::segments_of(shape.count, segments)),
        blocks_(shape.count, segments_),
        node_(node_of(rank)) {}

  Schedule build() const {
    const int children = count_children(node_);
    const bool is_root = rank_ == shape_.root;
    const bool takes_result = is_root && node_.parent >= 0;
    const Destination to = destination();
    Builder b(shape_, rank_, segments_ * (2 * children + 3));
    // Slots: those of a segment from the left and the right child, segment by segment. Then the
    // segments of the result, at a root that is not the top.
    for (int i = 0; i < segments_; ++i) {
      for (const int child : {node_.left, node_.right}) {
        if (child >= 0) b.slot(real(child), blocks_.count(i));
      }
    }
    const Range output = schedule::output(0, shape_.count);
    const bool is_end = to.peer < 0;
    const Range sums = is_end ? output : children > 0 ? b.scratch(shape_.count) : Range{};
    for (int i = 0; i < segments_; ++i) {
      const Value own{segment(schedule::input(0, shape_.count), i)};
      const Value sum = combine_around(b, own, segment(sums, i), {}, i * children,
                                       node_.left >= 0 ? 1 : 0, node_.right >= 0 ? 1 : 0);
      if (!is_end) b.send(to.peer, to.first_slot + i * to.stride, sum.range, {sum.ready});
      if (is_end && children == 0) b.copy(segment(output, i), own.range);
    }
    for (int i = 0; takes_result && i < segments_; ++i) {
      const SlotId slot = b.slot(real(tree_.top()), blocks_.count(i));
      const OpId arrived = b.wait(slot);
      // After the own segment was sent: in place, this overwrites it.
      const OpId given = i * (2 * children + 1) + 2 * children;
      b.copy(segment(output, i), b.of(slot), {arrived, given});
    }
    return std::move(b).take();
  }

 private:
  // The receiver of the sums: the parent, the root, or none.
  struct Destination {
    int peer = -1;
    SlotId first_slot = 0;
    int stride = 1;  // from a segment's slot to the next
  };

  Destination destination() const {
    if (node_.parent >= 0) {
      const pattern::InOrderNode parent = tree_.node(node_.parent);
      const bool second = parent.left >= 0 && real(parent.right) == rank_;
      return {real(node_.parent), second ? 1 : 0, count_children(parent)};
    }
    if (rank_ == shape_.root) return {};
    return {shape_.root, segments_ * count_children(node_of(shape_.root)), 1};
  }

  int real(int t) const { return t < 0 ? t : pattern::ring_shift(shape_.ranks, t, shift_); }
  pattern::InOrderNode node_of(int rank) const {
    return tree_.node(pattern::ring_shift(shape_.ranks, rank, -shift_));
  }
  static int count_children(const pattern::InOrderNode& node) {
    return (node.left >= 0 ? 1 : 0) + (node.right >= 0 ? 1 : 0);
  }
  Range segment(Range vector, int i) const {
    vector.offset += blocks_.offset(i);
    vector.count = blocks_.count(i);
    return vector;
  }

  const Shape& shape_;
  const Tree& tree_;
  int shift_, rank_, segments_;
  pattern::Blocks blocks_;
  pattern::InOrderNode node_;
};

}  // namespace unisono::algorithm::reduce
