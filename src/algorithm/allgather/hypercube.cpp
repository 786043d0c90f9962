// SPDX-License-Identifier: BSD-3-Clause
// Hypercube (dimensional exchange): in each dimension two ranks swap all they have gathered, so
// what a rank holds doubles. Done to the end, that is recursive doubling. The hybrid stops zeta
// dimensions early: what a rank holds then goes directly to all 2^zeta - 1 others of its subcube,
// one message staged once, where most of the bytes would have been a message a dimension.
// Surplus ranks are folded onto their left neighbour, which keeps what a rank holds one piece of
// the output, and get the whole vector at the end.
//
//   P = 5         fold         dimension 0      dimension 1          release
//   0 = pos 0     0 <- 1: 01   0 <> 2: 012      0 <> 3: 01234        0 -> 1: 01234
//   2 = pos 1                  3 <> 4: 34       2 <> 4: 01234
//   3 = pos 2                  zeta 2: 0 2 3 4 multicast to one another instead
//   4 = pos 3     (rank 1 is outside the cube)
//
// Steps: log2 P, or with zeta log2 P - zeta + 1; two more if P is no power of two. Bytes: (P-1) m,
// or with zeta (2 P / 2^zeta - 1) m; with folding at most twice that and P m.
// Source: Kumar and Kalé, ICPADS 2004, section 3.2, equations 4 to 6; adjacent ranks are folded,
// see pattern/cube.hpp. Recursive doubling: also Yu, Buntinas and Panda, Cluster 2004, 4.3.2.
#include <algorithm>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::allgather {

namespace {

Schedule exchange(const Shape& shape, int zeta, int rank) {
  const Range own = own_block(shape, rank);
  const pattern::FoldedCube cube(shape.ranks);
  const int direct = std::min(zeta, cube.dimensions());
  const int steps = cube.dimensions() - direct;
  const int others = (1 << direct) - 1;  // the other ranks of the last subcube
  const int folded = cube.fold_partner(rank);
  Builder b(shape, rank, 3 * steps + 2 * others + 5);
  if (cube.outside(rank)) {
    give_and_take(b, folded, steps + others, {own}, b.slot(folded, whole(shape).count));
    return std::move(b).take();
  }
  // Where the blocks lie that the subcube of dimension d around a rank has gathered.
  const auto gathered = [&](int member, int d) {
    const auto group = cube.subcube(cube.position(member), d);
    return place(shape, group.first, group.count);
  };
  // Numbers the others of the subcube from 0; both ends of a pair give each other the same number.
  const auto other = [&](int number) {
    return cube.rank_at(cube.position(rank) ^ ((number + 1) << steps));
  };
  // Slots: one a dimension, one a rank of the subcube, then that of the folded rank.
  for (int d = 0; d < steps; ++d) {
    const int partner = cube.partner(rank, d);
    b.slot(partner, gathered(partner, d).count);
  }
  for (int i = 0; i < others; ++i) b.slot(other(i), gathered(other(i), steps).count);
  const auto give = [&](int step, Value value) {
    if (step < steps) {
      return b.send(cube.partner(rank, step), step, value.range, {value.ready});
    }
    return send_to_each(b, others, value, [&](int i) {
      return schedule::Target{other(i), steps + i};
    });
  };

  // A rank without a folded partner sends its block before it copies it.
  const bool alone = folded < 0;
  const OpId sent = alone ? give(0, {own}) : Builder::kNone;
  OpId complete = b.copy(place(shape, rank), own, {sent});
  const auto receive = [&](SlotId slot, const Range& to) {
    const OpId arrived = b.wait(slot);
    complete = b.copy(to, b.of(slot), {arrived, complete});
  };
  if (!alone) receive(b.slot(folded, place(shape, folded).count), place(shape, folded));
  for (int d = 0; d < steps; ++d) {
    if (d > 0 || !alone) give(d, {gathered(rank, d), complete});
    receive(d, gathered(cube.partner(rank, d), d));
  }
  if (steps > 0 || !alone) give(steps, {gathered(rank, steps), complete});
  for (int i = 0; i < others; ++i) receive(steps + i, gathered(other(i), steps));
  if (!alone) b.send(folded, 0, whole(shape), {complete});
  return std::move(b).take();
}

}  // namespace

Schedule recursive_doubling(const Shape& shape, const Parameters&, int rank) {
  return exchange(shape, 0, rank);
}

Schedule hypercube(const Shape& shape, const Parameters& parameters, int rank) {
  return exchange(shape, parameters.values[0], rank);
}

}  // namespace unisono::algorithm::allgather
