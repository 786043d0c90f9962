// SPDX-License-Identifier: BSD-3-Clause
// Direct: everyone multicasts its block to all others. One step; each block is staged once and read
// P - 1 times. Best where a multicast is cheap and every rank has a core of its own.
//
//   P = 5:   0 => 1 2 3 4    1 => 0 2 3 4    2 => 0 1 3 4    3 => 0 1 2 4    4 => 0 1 2 3
//
// Steps: 1. Bytes: m, staged once.
// A rank takes the blocks of the ranks above it first, cyclically, so that not all ranks read the
// same block at the same time.
// Source: Kumar and Kalé, ICPADS 2004, section 3, equation 2; staged once as in sections 2 and 3.2.
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::allgather {

Schedule direct(const Shape& shape, const Parameters&, int rank) {
  const Range own = own_block(shape, rank);
  Builder b(shape, rank, 2 * shape.ranks);

  // Slots: one a rank but the own, in the order of ranks.
  OpId sent = Builder::kNone;
  if (shape.ranks > 1) sent = b.multicast({}, own);
  for (int peer = 0; peer < shape.ranks; ++peer) {
    if (peer == rank) continue;
    b.slot(peer, place(shape, peer).count);
    b.also_to({peer, slot_of(rank, peer)});
  }
  b.copy(place(shape, rank), own, {sent});
  for (int source = pattern::ring_next(shape.ranks, rank); source != rank;
       source = pattern::ring_next(shape.ranks, source)) {
    const SlotId slot = slot_of(source, rank);
    const OpId arrived = b.wait(slot);
    b.copy(place(shape, source), b.of(slot), {arrived});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
