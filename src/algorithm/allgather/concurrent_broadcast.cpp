// SPDX-License-Identifier: BSD-3-Clause
// Concurrent broadcasting: every rank's block goes down a binomial tree of its own. A block carries
// its origin i and j, the logarithm of its last hop; whoever gets it sends it on over the hops
// 2^(j+1), 2^(j+2), ... as long as they stay short of a whole turn from the origin, straight from
// where it came in. So a rank needs to know its peers at +-2^j only, and nothing about any tree.
//
//   P = 5, block of rank 0        every other block the same, shifted
//        0
//        |-- 1 -- 3               (0,0) to 1, which sends (0,1) to 3
//        |-- 2                    (0,1) to 2
//        `-- 4                    (0,2) to 4
//
// Steps: ceil(log2 P). Bytes: at most floor(P/2) m, each block staged once.
// Source: Yu, Buntinas and Panda, Cluster 2004, sections 4.1 and 4.3.3.
#include <bit>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::allgather {

Schedule concurrent_broadcast(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  Builder b(shape, rank, 2 * ranks + ranks / 2);
  // Slots: the block whose origin is `distance` below has slot distance - 1, on every rank.
  const auto forward = [&](Value block, int distance, int hop) {
    const int room = ranks - 1 - distance;  // the longest hop that still ends at a rank
    const int hops = room < hop ? 0 : std::bit_width(static_cast<unsigned>(room / hop));
    return send_to_each(b, hops, block, [&](int i) {
      const int far = hop << i;
      return schedule::Target{pattern::ring_shift(ranks, rank, far), distance + far - 1};
    });
  };
  const Range own = own_block(shape, rank);
  forward({own}, 0, 1);
  b.copy(place(shape, rank), own);
  for (int distance = 1; distance < ranks; ++distance) {
    const int hop = static_cast<int>(std::bit_floor(static_cast<unsigned>(distance)));
    const Range to = place(shape, pattern::ring_shift(ranks, rank, -distance));
    const SlotId slot = b.slot(pattern::ring_shift(ranks, rank, -hop), to.count);
    const Value block{b.of(slot), b.wait(slot)};
    // A hop of 2^31 would overflow an int; no rank is that far.
    if (hop <= (ranks - 1) / 2) forward(block, distance, 2 * hop);
    b.copy(to, block.range, {block.ready});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
