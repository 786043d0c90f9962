// SPDX-License-Identifier: BSD-3-Clause
// kPrefix: partitions of k ranks stand in a ring. In each round everyone gives the block it carries
// to its partition, in step i to rank xor i, and then to the rank k above, which carries it in the
// next round; at first everyone carries its own. All but one step of k stay among near ranks, and
// no step has contention on a fat tree whose nodes are all there.
//
//   P = 6, k = 2    round 0       round 1       round 2
//   rank 0          own:  1, 2    of 4: 1, 2    of 2: 1
//   rank 1          own:  0, 3    of 5: 0, 3    of 3: 0
//   rank 2          own:  3, 4    of 0: 3, 4    of 4: 3
//
// Steps: P-1 one after another; with batches of at least k, P/k. Bytes: m a batch.
// k = 1 is the ring. For a k that is a power of two and divides P.
// Source: Kumar and Kalé, ICPADS 2004, sections 4.4 (equation 9) and 4.6 (less barriers).
#include <bit>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/paced.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::allgather {

const char* needs_whole_partitions(const Shape& shape, const Parameters& parameters) {
  const int k = parameters.values[0];
  const bool can = std::has_single_bit(static_cast<unsigned>(k)) && shape.ranks % k == 0;
  return can ? nullptr : "k has to be a power of two that divides the number of ranks";
}

Schedule kprefix(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  const int k = parameters.values[0];
  Builder b(shape, rank, 3 * ranks);
  Paced paced(b, shape, rank, parameters.values[1]);
  Value carried{own_block(shape, rank)};
  for (int gone = 0; gone < ranks; gone += k) {  // how far the carried block is from its origin
    std::array<Hop, kMostHops> hops;
    std::size_t count = 0;
    for (int i = 1; i < k; ++i) {
      const int peer = rank ^ i;
      hops[count++] = {peer, peer, pattern::ring_shift(ranks, peer, -gone)};
    }
    if (gone + k < ranks) {
      hops[count++] = {pattern::ring_shift(ranks, rank, k), pattern::ring_shift(ranks, rank, -k),
                       pattern::ring_shift(ranks, rank, -gone - k)};
    }
    carried = paced.round(std::span(hops).first(count), carried);
  }
  paced.place_blocks();
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
