// SPDX-License-Identifier: BSD-3-Clause
// Gather up an f-nomial tree: a rank puts its own block and those of its subtree, which are the
// blocks of consecutive ranks, one after another and sends them to its parent in one message. The
// root takes few messages, but a block is copied at every level: for short blocks and many ranks.
//
//   P = 5, root 0, degree 2:   phase 0: 1 -> 0, 3 -> 2    phase 1: 2 -> 0 (2 3)    phase 2: 4 -> 0
//   P = 5, root 0, degree 4:   phase 0: 1 2 3 -> 0        phase 1: 4 -> 0
//
// Steps: ceil(log_f P). Bytes: f^(ceil(log_f P) - 1) m at the root of the largest subtree.
// Another root shifts the ranks cyclically; a subtree that goes beyond the last rank comes as one
// message and is two parts of the output.
// Source: the binomial tree of Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4, with
// the trees of Moody et al., SC 2003, section 5.2.
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"

namespace unisono::algorithm::gather {

Schedule fnomial(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0], shape.root);
  const pattern::TreeNode node = tree.node(rank);
  const Range own = schedule::input(0, schedule::block(shape, rank).count);
  Builder b(shape, rank, 3 * node.children + 2);
  if (node.children == 0 && rank != shape.root) {
    b.send(node.parent, node.child_number, own);
    return std::move(b).take();
  }
  // Slots: one a child.
  const bool is_root = rank == shape.root;
  const Range gathered =
      is_root ? Range{} : b.scratch(block_run(shape, rank, tree.subtree(rank)).count());
  OpId complete =
      b.copy(is_root ? output(schedule::block(shape, rank)) : first_of(gathered, own.count), own);
  Range rest = behind(gathered, own.count);
  for (int number = 0; number < node.children; ++number) {
    const int child = tree.child(rank, number);
    const BlockRun run = block_run(shape, child, tree.subtree(child));
    const SlotId slot = b.slot(child, run.count());
    const OpId arrived = b.wait(slot);
    if (is_root) {
      b.copy(output(run.upper), first_of(b.of(slot), run.upper.count), {arrived});
      if (run.lower.count == 0) continue;
      b.copy(output(run.lower), behind(b.of(slot), run.upper.count), {arrived});
    } else {
      complete = b.copy(first_of(rest, run.count()), b.of(slot), {arrived, complete});
      rest = behind(rest, run.count());
    }
  }
  if (!is_root) b.send(node.parent, node.child_number, gathered, {complete});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::gather
