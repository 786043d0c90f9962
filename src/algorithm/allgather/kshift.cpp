// SPDX-License-Identifier: BSD-3-Clause
// kShift: in each round everyone gives the block it carries to its k - 1 nearest ranks, half of
// them below and half above, cyclically, and then to the rank k above, which carries it in the next
// round; at first everyone carries its own. Most messages go to neighbours, so that a few missing
// nodes of a fat tree bring contention into a few steps only.
//
//   P = 5, k = 2    round 0               round 1
//   rank 0          own: 4 (-1), 2 (+2)   of 3: 4 (-1), 1 (+1)
//   rank 1          own: 0 (-1), 3 (+2)   of 4: 0 (-1), 2 (+1)
//
// Where k does not divide P, the last round has fewer peers; where the rank k above has the block
// already, the last hop is a shorter one, as above.
// Steps: P-1 one after another; with batches of at least k, ceil(P/k). Bytes: m a batch.
// Source: Kumar and Kalé, ICPADS 2004, sections 4.5 (equation 10) and 4.6 (less barriers). Their k:
// cyclic shifts that are free of contention, if k divides P.
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/paced.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::allgather {

const char* needs_free_shift(const Shape&, const Parameters& parameters) {
  const int k = parameters.values[0];
  const bool can = k <= 4 || k == 8;
  return can ? nullptr : "k has to be 1, 2, 3, 4 or 8; other shifts contend on a fat tree";
}

Schedule kshift(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  const int k = std::min(parameters.values[0], ranks);
  // A round's ranks are [centre - below, centre + above], as distances from the block's origin. The
  // centre carries the block. The turns go through the distances -below .. last.
  const int below = k / 2;
  const int above = (k - 1) / 2;
  const int last = ranks - 1 - below;
  Builder b(shape, rank, 3 * ranks);
  Paced paced(b, shape, rank, parameters.values[1]);
  const auto hop = [&](int from, int to) {
    return Hop{pattern::ring_shift(ranks, rank, to - from),
               pattern::ring_shift(ranks, rank, from - to), pattern::ring_shift(ranks, rank, -to)};
  };
  Value carried{own_block(shape, rank)};
  int centre = 0;
  for (int begin = -below; begin <= last; begin += k) {
    const int end = std::min(begin + below + above, last);
    std::array<Hop, kMostHops> hops;
    std::size_t count = 0;
    for (int to = begin; to <= end; ++to) {
      if (to != centre) hops[count++] = hop(centre, to);
    }
    const int next = std::min(begin + k + below, last);
    if (end < last) hops[count++] = hop(centre, next);
    carried = paced.round(std::span(hops).first(count), carried);
    centre = next;
  }
  paced.place_blocks();
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
