// SPDX-License-Identifier: BSD-3-Clause
// Reduce, then scatter: the vectors are combined up an f-nomial tree to rank 0, and the blocks of
// the result go down the same tree, those of a subtree in one message. One rank computes each
// element; the whole vector passes rank 0: for short vectors.
//
//   P = 5, degree 2
//   up    1 -> 0, 3 -> 2;  2 -> 0;  4 -> 0        ((x0 op x1) op (x2 op x3)) op x4
//   down  0 -> 4: block 4;  0 -> 2: blocks 2 3;  0 -> 1: block 1;  2 -> 3: block 3
//
// Steps: 2 ceil(log_f P). Bytes: (P + f^(ceil(log_f P) - 1) - 1) m at the root of the largest
// subtree.
// The order of ranks is kept. Empty blocks are sent too, as signals.
// Source: the reduce followed by a scatterv of Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005,
// section 4.4, with the trees of Moody et al., SC 2003, section 5.2.
#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

Schedule reduce_scatter(const Shape& shape, const Parameters& parameters, int rank) {
  const Range whole = schedule::input(0, schedule::whole_count(shape));
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  const auto blocks_of = [&](int subtree) {
    return schedule::neighbouring_blocks(shape, subtree, tree.subtree(subtree));
  };
  const std::int64_t begin = schedule::block(shape, rank).offset;
  Builder b(shape, rank, 3 * node.children + 3);

  // Slots: the subtree's part of the result (none at rank 0), then one a child.
  const bool is_root = node.parent < 0;
  const SlotId first = is_root ? 0 : 1;
  if (!is_root) b.slot(node.parent, blocks_of(rank).count);
  for (int child = 0; child < node.children; ++child) {
    b.slot(tree.child(rank, child), whole.count);
  }
  const Range partial = node.children > 0 ? b.scratch(whole.count) : Range{};
  Value result = combine_slots(b, {whole}, partial, first, node.children);
  std::vector<OpId> sends;
  if (!is_root) {
    const SlotId parent_slot = node.child_number + (node.parent == 0 ? 0 : 1);
    sends.push_back(b.send(node.parent, parent_slot, result.range, {result.ready}));
    result = {b.of(0), b.wait(0)};
  }
  for (int number = node.children - 1; number >= 0; --number) {
    const int child = tree.child(rank, number);
    const schedule::Block blocks = blocks_of(child);
    const Range message = first_of(behind(result.range, blocks.offset - begin), blocks.count);
    b.send(child, 0, message, {result.ready});
  }
  const std::int64_t own = schedule::block(shape, rank).count;
  finish(b, {first_of(result.range, own), result.ready}, sends);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
