// SPDX-License-Identifier: BSD-3-Clause
// Ring: the vector is cut into P blocks. In the first P - 1 steps each block travels once around
// and every rank it passes combines its own part into it; then the finished blocks travel around
// again. All links carry 1/P of the vector in every step: the least traffic, the most steps.
//
//   P = 5: the block that rank r sends in step s is r - s (mod 5)
//          step  0  1  2  3 | 4  5  6  7
//   rank 0       0  4  3  2 | 1  0  4  3       1 is complete at rank 0 after four steps:
//   rank 1       1  0  4  3 | 2  1  0  4       (((x1 op x2) op x3) op x4) op x0
//
// Steps: 2 (P-1). Bytes: 2 n (P-1)/P.
// Block b is combined in the order b, b+1, ..., P-1, 0, ..., b-1: the operator has to commute. One
// rank finishes each block, so all ranks get the same bits. Empty blocks are sent too, as signals.
// Source: Patarasuk and Yuan, JPDC 69(2), 2009; the ring of Kumar and Kalé 2004, section 4.2.
#include "algorithm/pattern/ring.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::allreduce {

Schedule ring(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const int steps = ranks - 1;
  const int next = pattern::ring_next(ranks, rank);
  const int previous = pattern::ring_previous(ranks, rank);
  const pattern::Blocks blocks(shape.count, ranks);
  // The block that is sent in a step of the first round, and comes back complete in that step of
  // the second.
  const auto sent_in = [&](int step) { return pattern::ring_block(ranks, rank, step); };
  const auto output = [&](int block) {
    return schedule::output(blocks.offset(block), blocks.count(block));
  };
  Builder b(shape, rank, 6 * steps + 1);
  if (ranks == 1) b.copy(output(0), schedule::input(0, shape.count));

  // Slots: one a step, in both rounds. A step's ops are three: send, wait, reduce.
  constexpr int kOpsPerStep = 3;
  Value value{schedule::input(blocks.offset(rank), blocks.count(rank))};
  for (int step = 0; step < steps; ++step) {
    const int block = sent_in(step + 1);
    const SlotId slot = b.slot(previous, blocks.count(block));
    b.send(next, slot, value.range, {value.ready});
    const OpId arrived = b.wait(slot);
    const Range own = schedule::input(blocks.offset(block), blocks.count(block));
    value = {output(block), b.reduce(output(block), b.of(slot), own, {arrived})};
  }
  if (steps > 0) b.send(next, steps, value.range, {value.ready});
  for (int step = 0; step < steps; ++step) {
    const int block = sent_in(step);
    const SlotId slot = b.slot(previous, blocks.count(block));
    const OpId arrived = b.wait(slot);
    if (step + 1 < steps) b.send(next, slot + 1, b.of(slot), {arrived});
    // After the first round's send of the block, because it reads the range overwritten here.
    b.copy(output(block), b.of(slot), {arrived, kOpsPerStep * step});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
