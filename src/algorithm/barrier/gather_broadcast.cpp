// SPDX-License-Identifier: BSD-3-Clause
// Gather, then broadcast: readiness climbs an f-nomial tree, and when it has reached rank 0, the
// release goes down the same tree by sends. It is gather-release where there is no multicast: no
// rank sends more than (f-1) ceil(log_f P) signals, instead of P-1 at rank 0.
//
//   P = 5, degree 2
//        0
//        |-- 1               up    1 -> 0, 3 -> 2;  2 -> 0;  4 -> 0
//        |-- 2 -- 3          down  0 -> 4, 0 -> 2, 0 -> 1;  2 -> 3
//        `-- 4
//
// Steps: 2 ceil(log_f P). Bytes: none, signals only.
// Source: gather-and-broadcast of Buntinas, Panda and Sadayappan, IPDPS 2001; the software barrier
// of Petrini et al., HotI 2003, 4.3; the tree of Moody et al., SC 2003, section 5.2.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/fnomial.hpp"

namespace unisono::algorithm::barrier {

Schedule gather_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::FnomialTree tree(shape.ranks, parameters.values[0]);
  const pattern::TreeNode node = tree.node(rank);
  const Range signal = schedule::input(0, 0);
  Builder b(shape, rank, 2 * node.children + 2);
  // Slots: the release (none at the root), then one a child.
  const bool is_root = node.parent < 0;
  if (!is_root) b.slot(node.parent, 0);
  OpId ready = Builder::kNone;
  for (int child = 0; child < node.children; ++child) {
    ready = b.wait(b.slot(tree.child(rank, child), 0), {ready});
  }
  if (!is_root) {
    b.send(node.parent, node.child_number + (node.parent == 0 ? 0 : 1), signal, {ready});
    ready = b.wait(0);
  }
  for (int child = node.children - 1; child >= 0; --child) {
    b.send(tree.child(rank, child), 0, signal, {ready});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
