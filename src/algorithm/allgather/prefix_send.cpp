// SPDX-License-Identifier: BSD-3-Clause
// Prefix-send: in step i everyone swaps blocks with rank xor i. Every step maps a fat tree onto
// itself, so that there is no contention if P is a power of two. Otherwise some ranks have no peer
// in some steps and go on to the next. A rank sends in a step when it has what the step before
// brought, which keeps pairs together.
//
//   P = 5     step 1   2    3    4    5   6   7
//   rank 0         1   2    3    4
//   rank 1         0   3    2    -    4
//   rank 2         3   0    1    -    -   4
//   rank 3         2   1    0    -    -   -   4
//   rank 4         -   -    -    0    1   2   3
//
// Steps: P-1, or at most the next power of two less one. Bytes: (P-1) m.
// Source: Kumar and Kalé, ICPADS 2004, section 4.3 (equation 8) and lemma 5.
#include <bit>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::allgather {

Schedule prefix_send(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const int steps = static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks)));
  Builder b(shape, rank, 3 * ranks);
  // Slots: one a rank but the own, in the order of ranks.
  for (int source = 0; source < ranks; ++source) {
    if (source != rank) b.slot(source, place(shape, source).count);
  }
  const Range own = own_block(shape, rank);
  Range to = place(shape, rank);  // the block that came last; the own block at first
  Value last{own};
  for (int step = 1; step < steps; ++step) {
    const int peer = rank ^ step;
    if (peer >= ranks) continue;
    b.send(peer, slot_of(rank, peer), own, {last.ready});
    b.copy(to, last.range, {last.ready});
    const SlotId slot = slot_of(peer, rank);
    last = {b.of(slot), b.wait(slot)};
    to = place(shape, peer);
  }
  b.copy(to, last.range, {last.ready});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
