// SPDX-License-Identifier: BSD-3-Clause
// Ring: the block of each rank travels once around the ring, from the rank above it to itself, and
// every rank it passes combines its own part into it. One neighbour on each side, no contention on
// any network: for long vectors.
//
//   P = 5: the block that rank r sends in step s is r - 1 - s (mod 5)
//          step  0  1  2  3
//   rank 0       4  3  2  1       0 comes complete: (((x1 op x2) op x3) op x4) op x0
//   rank 1       0  4  3  2
//
// Steps: P-1. Bytes: (P-1) m.
// Block b is combined in the order b+1, ..., P-1, 0, ..., b: the operator has to commute. Two
// pieces of scratch memory take turns; empty blocks are sent too, as signals. Source: the first
// half of the allreduce of Patarasuk and Yuan, JPDC 69(2), 2009.
#include "algorithm/pattern/ring.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

Schedule ring(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const int steps = ranks - 1;
  const int next = pattern::ring_next(ranks, rank);
  const int previous = pattern::ring_previous(ranks, rank);
  // The own part of the block that leaves in a step; after the last one, of the own block.
  const auto part_in = [&](int step) {
    return input(schedule::block(shape, pattern::ring_block(ranks, previous, step)));
  };
  Builder b(shape, rank, 3 * steps + 2);
  if (ranks == 1) {
    finish(b, {part_in(0)}, {});
    return std::move(b).take();
  }
  std::int64_t longest[] = {0, 0};
  for (int step = 0; step + 1 < steps; ++step) {
    longest[step % 2] = std::max(longest[step % 2], part_in(step + 1).count);
  }
  const Range turns[] = {b.scratch(longest[0]), b.scratch(longest[1])};

  // Slots: one a step.
  Value value{part_in(0)};
  OpId sent_before = Builder::kNone;
  OpId first_sent = Builder::kNone;
  for (int step = 0; step < steps; ++step) {
    const OpId sent = b.send(next, step, value.range, {value.ready});
    if (step == 0) first_sent = sent;
    const Range own = part_in(step + 1);
    const SlotId slot = b.slot(previous, own.count);
    const OpId arrived = b.wait(slot);
    if (step + 1 == steps) {
      const OpId sends[] = {first_sent, value.ready};
      finish(b, shape, rank, {b.of(slot), arrived}, {own}, sends);
      break;
    }
    // After the send of two steps before, because it reads the range overwritten here.
    const Range target = first_of(turns[step % 2], own.count);
    value = {target, b.reduce(target, b.of(slot), own, {arrived, value.ready, sent_before})};
    sent_before = sent;
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
