// SPDX-License-Identifier: BSD-3-Clause
// Neighbour exchange: everyone swaps with the neighbour on one side, then on the other, in turn;
// first its own block, then its own pair of blocks, then the pair that the last swap brought. Half
// the steps of a ring, with the same bytes and two neighbours only.
//
//   P = 6     step 0    step 1       step 2
//   pairs     0<>1      1<>2: 01,23  0<>1: 45,23
//             2<>3      3<>4: 23,45  2<>3: 01,45
//             4<>5      5<>0: 45,01  4<>5: 23,01
//
// Steps: P/2. Bytes: (P-1) m. For an even number of ranks, so that pairs and sides match.
// Source: Chen, Zhang, Zhang and Yuan, HPC Asia 2005.
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::allgather {

const char* needs_even_ranks(const Shape& shape, const Parameters&) {
  const bool can = shape.ranks == 1 || shape.ranks % 2 == 0;
  return can ? nullptr : "the number of ranks has to be even; ring takes any";
}

Schedule neighbor_exchange(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const int steps = ranks / 2;
  const Range own = own_block(shape, rank);
  Builder b(shape, rank, 3 * steps + 1);
  if (ranks == 1) {
    b.copy(place(shape, rank), own);
    return std::move(b).take();
  }
  // In even steps a rank exchanges with the other of its pair, in odd ones with the rank on its
  // other side.
  const int mate = rank ^ 1;
  const int across = pattern::ring_shift(ranks, rank, rank - mate);
  // The pair whose blocks arrive in step s. Odd steps bring the pairs on their side from near to
  // far; even steps do the same on the mate's side.
  const auto pair_of = [&](int step) {
    const int distance = (step + 1) / 2;
    const int towards_across = rank > mate ? distance : -distance;
    const int pair =
        pattern::ring_shift(steps, rank / 2, step % 2 == 1 ? towards_across : -towards_across);
    return place(shape, 2 * pair, 2);
  };

  // Slots: one a step.
  b.send(mate, 0, own);
  const OpId placed = b.copy(place(shape, rank), own);
  const SlotId first = b.slot(mate, place(shape, mate).count);
  const OpId arrived = b.wait(first);
  const OpId paired = b.copy(place(shape, mate), b.of(first), {arrived, placed});
  Value pair{place(shape, rank < mate ? rank : mate, 2), paired};
  Range to;  // of the pair, unless it lies in the output already
  for (int step = 1; step < steps; ++step) {
    const int peer = step % 2 == 1 ? across : mate;
    b.send(peer, step, pair.range, {pair.ready});
    if (step > 1) b.copy(to, pair.range, {pair.ready});
    to = pair_of(step);
    const SlotId slot = b.slot(peer, to.count);
    pair = {b.of(slot), b.wait(slot)};
  }
  if (steps > 1) b.copy(to, pair.range, {pair.ready});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
