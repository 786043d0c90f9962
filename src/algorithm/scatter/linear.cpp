// SPDX-License-Identifier: BSD-3-Clause
// Linear scatter: the root sends each rank its block. One step and no forwarding: each byte moves
// once. The root sends P - 1 messages, to the ranks above it first, cyclically.
//
//   P = 5, root 2:   2 -> 3, 2 -> 4, 2 -> 0, 2 -> 1
//
// Steps: 1. Bytes: (P-1) m at the root.
// A rank other than the root needs to know its own count only. Empty blocks are not sent, which
// both ends know.
// Source: the definition of MPI_Scatter, MPI 3.1, section 5.6.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::scatter {

Schedule linear(const Shape& shape, const Parameters&, int rank) {
  const Range own = schedule::output(0, schedule::block(shape, rank).count);
  if (rank != shape.root) {
    Builder b(shape, rank, 2);
    const SlotId slot = b.slot(shape.root, own.count);
    if (own.count == 0) return std::move(b).take();
    const OpId arrived = b.wait(slot);
    b.copy(own, b.of(slot), {arrived});
    return std::move(b).take();
  }
  Builder b(shape, rank, shape.ranks);
  for (int peer = pattern::ring_next(shape.ranks, rank); peer != rank;
       peer = pattern::ring_next(shape.ranks, peer)) {
    const Range block = input(schedule::block(shape, peer));
    if (block.count > 0) b.send(peer, 0, block);
  }
  b.copy(own, input(schedule::block(shape, rank)));
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scatter
