// SPDX-License-Identifier: BSD-3-Clause
// Direct many-to-many: every rank that has a block multicasts it to the receivers. One step; each
// block is staged once, however many receive it. Ranks that neither give nor get have nothing to
// do.
//
//   P = 5, blocks 1 0 2 0 0, receivers 0 1 4:   0 => 1 4    2 => 0 1 4
//
// Steps: 1. Bytes: m, staged once.
// A receiver takes the blocks of the senders above it first, cyclically, so that not all receivers
// read the same block at the same time.
// Source: Kumar and Kalé, ICPADS 2004, section 3, equation 2, for parts of the ranks.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::many_to_many {

Schedule direct(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const auto block = [&](int of) { return schedule::block(shape, of); };
  const Range own = schedule::input(0, block(rank).count);
  Builder b(shape, rank, 2 * ranks);

  // Slots: one a sender but the own rank, in the order of ranks.
  std::vector<SlotId> slots(static_cast<std::size_t>(ranks), -1);
  int senders_below = 0;
  for (int source = 0; source < ranks; ++source) {
    if (source < rank && block(source).count > 0) ++senders_below;
    if (!schedule::receives(shape, rank) || source == rank || block(source).count == 0) continue;
    slots[static_cast<std::size_t>(source)] = b.slot(source, block(source).count);
  }
  OpId sent = Builder::kNone;
  for (int to = 0; to < ranks && own.count > 0; ++to) {
    if (to == rank || !schedule::receives(shape, to)) continue;
    if (sent == Builder::kNone) sent = b.multicast({}, own);
    const bool sends_too = block(to).count > 0;
    b.also_to({to, sends_too && to < rank ? senders_below - 1 : senders_below});
  }
  if (!schedule::receives(shape, rank)) return std::move(b).take();
  b.copy(output(block(rank)), own, {sent});
  for (int source = pattern::ring_next(ranks, rank); source != rank;
       source = pattern::ring_next(ranks, source)) {
    const SlotId slot = slots[static_cast<std::size_t>(source)];
    if (slot < 0) continue;
    const OpId arrived = b.wait(slot);
    b.copy(output(block(source)), b.of(slot), {arrived});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::many_to_many
