// SPDX-License-Identifier: BSD-3-Clause
// Linear gather: everyone sends its block to the root, which copies each to its place. One step and
// no forwarding: each byte moves once. The root takes P - 1 messages.
//
//   P = 5, root 2:   0 1 3 4 -> 2
//
// Steps: 1. Bytes: m.
// A rank other than the root needs to know its own count only: the root has a slot for each rank,
// also for empty blocks, so that slots have the same numbers whatever the counts are. Empty blocks
// are not sent, which both ends know.
// Source: the definition of MPI_Gather, MPI 3.1, section 5.5.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::gather {

Schedule linear(const Shape& shape, const Parameters&, int rank) {
  const Range own = schedule::input(0, schedule::block(shape, rank).count);
  if (rank != shape.root) {
    Builder b(shape, rank, 1);
    if (own.count > 0) b.send(shape.root, slot_of(rank, shape.root), own);
    return std::move(b).take();
  }
  Builder b(shape, rank, 2 * shape.ranks);
  for (int source = 0; source < shape.ranks; ++source) {
    const schedule::Block block = schedule::block(shape, source);
    if (source == rank) {
      b.copy(output(block), own);
      continue;
    }
    const SlotId slot = b.slot(source, block.count);
    if (block.count == 0) continue;
    const OpId arrived = b.wait(slot);
    b.copy(output(block), b.of(slot), {arrived});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::gather
