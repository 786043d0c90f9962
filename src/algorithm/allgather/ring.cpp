// SPDX-License-Identifier: BSD-3-Clause
// Ring: everyone passes its block to the next rank, then, step after step, the block that has just
// come in. A block is forwarded from the slot in which it came and copied to its place afterwards.
// One neighbour on each side, no contention on any network: for long blocks.
//
//   P = 5: the block that rank r sends in step s is r - s (mod 5)
//          step  0  1  2  3
//   rank 0       0  4  3  2
//   rank 1       1  0  4  3
//
// Steps: P-1. Bytes: (P-1) m.
// Source: Kumar and Kalé, ICPADS 2004, section 4.2.
#include "algorithm/pattern/ring.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::allgather {

Schedule ring(const Shape& shape, const Parameters&, int rank) {
  const int steps = shape.ranks - 1;
  const int next = pattern::ring_next(shape.ranks, rank);
  const int previous = pattern::ring_previous(shape.ranks, rank);
  Builder b(shape, rank, 3 * steps + 1);

  // Slots: one a step.
  const Range own = own_block(shape, rank);
  const OpId sent = steps > 0 ? b.send(next, 0, own) : Builder::kNone;
  b.copy(place(shape, rank), own, {sent});
  for (int step = 0; step < steps; ++step) {
    const Range arriving = place(shape, pattern::ring_block(shape.ranks, rank, step + 1));
    const SlotId slot = b.slot(previous, arriving.count);
    const OpId arrived = b.wait(slot);
    if (step + 1 < steps) b.send(next, slot + 1, b.of(slot), {arrived});
    b.copy(arriving, b.of(slot), {arrived});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
