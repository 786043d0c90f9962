// SPDX-License-Identifier: BSD-3-Clause
// Linear all-to-all: everyone sends all its blocks, then takes what arrives. Each byte moves once
// and nothing waits for anything else; P (P-1) messages are under way at once. Ranks begin with the
// one above them, so that not all send to the same rank first.
//
//   P = 5:   0 -> 1 2 3 4    1 -> 2 3 4 0    2 -> 3 4 0 1    3 -> 4 0 1 2    4 -> 0 1 2 3
//
// Steps: 1. Bytes: (P-1) m.
// A rank needs to know the counts of what it sends and receives only: slots are one a rank, also
// for empty blocks. Empty blocks are not sent, which both ends know. In place, a block is
// overwritten once it is sent. Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005,
// section 4.3 (medium-size messages).
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::alltoall {

Schedule linear(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const auto sent = [&](int to) { return schedule::sent_block(shape, rank, to); };
  const auto received = [&](int from) { return schedule::received_block(shape, from, rank); };
  Builder b(shape, rank, 3 * ranks);
  for (int source = 0; source < ranks; ++source) {
    if (source != rank) b.slot(source, received(source).count);
  }
  std::vector<OpId> sends(static_cast<std::size_t>(ranks), Builder::kNone);
  for (int to = pattern::ring_next(ranks, rank); to != rank; to = pattern::ring_next(ranks, to)) {
    if (sent(to).count == 0) continue;
    sends[static_cast<std::size_t>(to)] = b.send(to, slot_of(rank, to), input(sent(to)));
  }
  b.copy(output(received(rank)), input(sent(rank)));
  for (int from = pattern::ring_previous(ranks, rank); from != rank;
       from = pattern::ring_previous(ranks, from)) {
    if (received(from).count == 0) continue;
    const SlotId slot = slot_of(from, rank);
    const OpId arrived = b.wait(slot);
    // In place, the block to send to `from` lies where the block of `from` belongs.
    b.copy(output(received(from)), b.of(slot), {arrived, sends[static_cast<std::size_t>(from)]});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::alltoall
