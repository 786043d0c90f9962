// SPDX-License-Identifier: BSD-3-Clause
// Scatter down an f-nomial tree: a rank gets the blocks of its subtree, which are those of
// consecutive ranks, in one message; it sends each child that child's part of it, the largest
// subtree first, and then copies its own. The root sends few messages: for short blocks and many
// ranks.
//
//   P = 5, root 0, degree 2:   0 -> 4;  0 -> 2 (2 3);  0 -> 1;  2 -> 3
//   P = 5, root 0, degree 4:   0 -> 4;  0 -> 3;  0 -> 2;  0 -> 1
//
// Steps: ceil(log_f P). Bytes: (P-1) m at the root.
// Another root shifts the ranks cyclically; the blocks of a subtree that goes beyond the last rank
// are two parts of the root's input, which it puts together first.
// Source: the binomial tree of Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.2 (the
// scatter of the long broadcast), with the trees of Moody et al., SC 2003, section 5.2.
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"

namespace unisono::algorithm::scatter {

namespace {

// The root's blocks of a subtree, in one piece.
Value put_together(Builder& b, const BlockRun& run) {
  if (run.is_one_part()) return {input(run.only_part())};
  const Range whole = b.scratch(run.count());
  const OpId upper = b.copy(first_of(whole, run.upper.count), input(run.upper));
  return {whole, b.copy(behind(whole, run.upper.count), input(run.lower), {upper})};
}

}  // namespace

Schedule fnomial(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0], shape.root);
  const pattern::TreeNode node = tree.node(rank);
  const bool is_root = rank == shape.root;
  const Range own = schedule::output(0, schedule::block(shape, rank).count);
  const auto blocks_of = [&](int subtree) {
    return block_run(shape, subtree, tree.subtree(subtree));
  };
  Builder b(shape, rank, 3 * node.children + 2);
  Value received;  // the blocks from this rank on
  if (!is_root) {
    const SlotId slot = b.slot(node.parent, blocks_of(rank).count());
    received = {b.of(slot), b.wait(slot)};
  }
  for (int number = node.children - 1; number >= 0; --number) {
    const int child = tree.child(rank, number);
    const BlockRun run = blocks_of(child);
    Value part = received;
    if (is_root) {
      part = put_together(b, run);
    } else {
      const int before = child > rank ? child - rank : child - rank + shape.ranks;
      part.range =
          first_of(behind(received.range, block_run(shape, rank, before).count()), run.count());
    }
    b.send(child, 0, part.range, {part.ready});
  }
  b.copy(own, is_root ? input(schedule::block(shape, rank)) : first_of(received.range, own.count),
         {received.ready});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scatter
