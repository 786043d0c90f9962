// SPDX-License-Identifier: BSD-3-Clause
// Flat broadcast: the root multicasts the vector to all, once. Where the transport has a multicast
// (shared memory: one staged copy that all read; Ethernet: IP multicast), its cost at the root does
// not grow with the number of ranks.
//
//   P = 5, root 2:   2 => 0 1 3 4   (one multicast)
//
// Steps: 1. Bytes: n, staged once.
// Source: Petrini et al., HotI 2003, sections 4.1 and 4.4 (broadcast by hardware multicast).
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::broadcast {

Schedule flat(const Shape& shape, const Parameters&, int rank) {
  Builder b(shape, rank, 2);
  if (rank == shape.root) {
    multicast_to_others(b, shape.ranks, rank, 0, {schedule::input(0, shape.count)});
  } else {
    const SlotId slot = b.slot(shape.root, shape.count);
    const OpId arrived = b.wait(slot);
    b.copy(schedule::output(0, shape.count), b.of(slot), {arrived});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
