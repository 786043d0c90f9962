// SPDX-License-Identifier: BSD-3-Clause
// Two trees: half of the vector goes down one binary tree, half down another in which the inner
// nodes of the first are leaves, both in segments. So every rank sends about as much as it gets,
// where the leaves of a single tree only receive: twice its bandwidth, and the steps of a tree.
//
//   P = 5, root 0     first half        second half
//                     0 -- 4            0 -- 1
//                          `-- 2             `-- 3
//                              |-- 1             |-- 4
//                              `-- 3             `-- 2
//
// Steps: floor(log2 (P-1)) + 1, and a segment's time for each further segment. Bytes: n.
// A rank alternates between the trees segment by segment; the colours of the source, which keep a
// rank from having two messages at once on one link, are left to the transport.
// Source: Sanders, Speck and Träff, Parallel Computing 35(12), 2009.
#include "algorithm/pattern/double_tree.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::broadcast {

namespace {

// One tree and the half of the vector that goes down it.
struct Half {
  pattern::BinaryNode node;
  std::int64_t offset;
  int segments;
  pattern::Blocks blocks;
  SlotId first_slot;

  Half(const pattern::BinaryNode& at, const pattern::HalvingRange& piece, int wanted, SlotId first)
      : node(at),
        offset(piece.offset),
        segments(pattern::segments_of(piece.count, wanted)),
        blocks(piece.count, segments),
        first_slot(first) {}

  void pass_on(Builder& b, int segment) const {
    const SlotId slot = first_slot + segment;
    const std::int64_t at = offset + blocks.offset(segment);
    Value value{schedule::input(at, blocks.count(segment))};
    if (node.parent >= 0) value = {b.of(slot), b.wait(slot)};
    for (const int child : {node.left, node.right}) {
      if (child >= 0) b.send(child, slot, value.range, {value.ready});
    }
    if (node.parent >= 0) {
      b.copy(schedule::output(at, value.range.count), value.range, {value.ready});
    }
  }
};

}  // namespace

Schedule double_tree(const Shape& shape, const Parameters& parameters, int rank) {
  if (shape.ranks == 1) return Builder(shape, rank, 0).take();
  const pattern::DoubleTree trees(shape.ranks, shape.root);
  const pattern::HalvingRange vector{0, shape.count};
  const int wanted = parameters.values[0];
  const Half first(trees.node(0, rank), vector.lower_half(), wanted, 0);
  const Half second(trees.node(1, rank), vector.upper_half(), wanted, first.segments);
  Builder b(shape, rank, 4 * (first.segments + second.segments));
  // Slots: the first half's segments, then those of the second.
  for (const Half* half : {&first, &second}) {
    if (half->node.parent < 0) continue;
    for (int i = 0; i < half->segments; ++i) b.slot(half->node.parent, half->blocks.count(i));
  }
  for (int i = 0; i < first.segments; ++i) {
    first.pass_on(b, i);
    if (i < second.segments) second.pass_on(b, i);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
