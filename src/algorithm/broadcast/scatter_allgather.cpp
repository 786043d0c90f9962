// SPDX-License-Identifier: BSD-3-Clause
// Scatter, then allgather (van de Geijn): the root cuts the vector into a block per rank and sends
// them down a binomial tree, to each child those of its subtree; then the blocks travel around a
// ring. About twice the vector passes a rank, whatever P is. What a rank got for its subtree is not
// sent to it again, and the root, which has everything, feeds its neighbour and receives nothing.
//
//   P = 5, root 0: rank r's block is r
//   scatter    0 -> 4: 4    0 -> 2: 2 3    0 -> 1: 1    2 -> 3: 3
//   ring       0 -> 1: 0 4 3 2    1 -> 2: 1 0 4    2 -> 3: 2 1 0 4    3 -> 4: 3 2 1 0
//
// Another root shifts the ranks cyclically. Steps: P-1. Bytes: 2 n (P-1)/P at the root.
// Source: Barnett, Shuler, Gupta, Payne, van de Geijn and Watts, SHPCC 1994; Thakur, Rabenseifner
// and Gropp, IJHPCA 19(1), 2005.
#include <algorithm>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::broadcast {

namespace {

// Ranks count from the root here.
struct Scatter {
  int ranks;
  pattern::Blocks blocks;

  // How many blocks go to a rank: its own and those of its subtree.
  int subtree(int place) const {
    return place == 0 ? ranks : std::min(place & -place, ranks - place);
  }
  pattern::HalvingRange piece(int first, int count) const {
    const std::int64_t offset = blocks.offset(first);
    return {offset, blocks.offset(first + count) - offset};
  }
  // How many blocks a rank gets from the one before it.
  int from_ring(int place) const { return ranks - subtree(place); }
};

}  // namespace

Schedule scatter_allgather(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const Scatter scatter{ranks, pattern::Blocks(shape.count, ranks)};
  const pattern::FnomialTree tree(ranks, 2, shape.root);
  const pattern::TreeNode node = tree.node(rank);
  const int at = pattern::ring_shift(ranks, rank, -shape.root);
  const int received = scatter.from_ring(at);
  Builder b(shape, rank, 3 * ranks + node.children);

  // The part scattered to this rank; at the root, its input. Slots: that part, then a block for
  // each step of the ring.
  const pattern::HalvingRange mine = scatter.piece(at, scatter.subtree(at));
  Value held{schedule::input(0, shape.count)};
  if (at > 0) {
    const SlotId slot = b.slot(node.parent, mine.count);
    held = {b.of(slot), b.wait(slot)};
  }
  const auto part_of_held = [&](const pattern::HalvingRange& piece) {
    Range range = held.range;
    range.offset += piece.offset - mine.offset;
    range.count = piece.count;
    return Value{range, held.ready};
  };
  for (int child = node.children - 1; child >= 0; --child) {
    const int to = tree.child(rank, child);
    const int place = pattern::ring_shift(ranks, to, -shape.root);
    b.send(to, 0, part_of_held(scatter.piece(place, scatter.subtree(place))).range, {held.ready});
  }
  const auto copy_out = [&](const pattern::HalvingRange& piece, const Value& value) {
    if (at > 0) b.copy(schedule::output(piece.offset, piece.count), value.range, {value.ready});
  };

  const int sent = at + 1 < ranks ? scatter.from_ring(at + 1) : 0;
  pattern::HalvingRange last = mine;  // the block that came last and is not copied yet
  Value block = held;
  for (int step = 1; step < ranks; ++step) {
    // In step s a rank sends the block of the rank s - 1 before it, which has arrived by now.
    if (step <= sent) {
      const int owner = pattern::ring_shift(ranks, at, 1 - step);
      const bool came_now = step > 1 && step - 1 <= received;
      const Value given = came_now ? block : part_of_held(scatter.piece(owner, 1));
      b.send(pattern::ring_next(ranks, rank), step, given.range, {given.ready});
    }
    if (step - 1 <= received) copy_out(last, block);
    if (step > received) continue;
    last = scatter.piece(pattern::ring_shift(ranks, at, -step), 1);
    const SlotId slot = b.slot(pattern::ring_previous(ranks, rank), last.count);
    block = {b.of(slot), b.wait(slot)};
  }
  if (received == ranks - 1) copy_out(last, block);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
