// SPDX-License-Identifier: BSD-3-Clause
// Recursive doubling (hypercube, dimensional exchange): in each dimension two ranks swap all they
// have gathered, so what a rank holds doubles. Surplus ranks are folded onto their left neighbour,
// which keeps what a rank holds one piece of the output, and get the whole vector at the end.
//
//   P = 5         fold         dimension 0      dimension 1          release
//   0 = pos 0     0 <- 1: 01   0 <> 2: 012      0 <> 3: 01234        0 -> 1: 01234
//   2 = pos 1                  3 <> 4: 34       2 <> 4: 01234
//   3 = pos 2
//   4 = pos 3     (rank 1 is outside the cube)
//
// Steps: log2 P, or floor(log2 P) + 2 if P is no power of two. Bytes: (P-1) m; with folding at most
// (2 (M-1) + P) m, M the size of the cube.
// Source: Kumar and Kalé, ICPADS 2004, section 3.2; adjacent ranks are folded, see
// pattern/cube.hpp.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::allgather {

Schedule recursive_doubling(const Shape& shape, const Parameters&, int rank) {
  const auto block = [&](int of) { return schedule::block(shape, of); };
  const Range own = schedule::input(0, block(rank).count);
  const Range whole = schedule::output(0, schedule::whole_count(shape));
  const pattern::FoldedCube cube(shape.ranks);
  const int steps = cube.dimensions();
  const int folded = cube.fold_partner(rank);
  // Where the blocks lie that the subcube of dimension d around a rank has gathered.
  const auto gathered = [&](int member, int d) {
    const auto group = cube.subcube(cube.position(member), d);
    return output(schedule::neighbouring_blocks(shape, group.first, group.count));
  };
  Builder b(shape, rank, 3 * steps + 4);
  if (cube.outside(rank)) {
    give_and_take(b, folded, steps, {own}, b.slot(folded, whole.count));
    return std::move(b).take();
  }
  // Slots: one a dimension, then that of the folded rank.
  for (int d = 0; d < steps; ++d) {
    const int partner = cube.partner(rank, d);
    b.slot(partner, gathered(partner, d).count);
  }
  // A rank that stands for itself alone sends its block before it copies it.
  const bool alone = folded < 0;
  const OpId sent = alone && steps > 0 ? b.send(cube.partner(rank, 0), 0, own) : Builder::kNone;
  OpId complete = b.copy(output(block(rank)), own, {sent});
  const auto receive = [&](SlotId slot, const Range& place) {
    const OpId arrived = b.wait(slot);
    complete = b.copy(place, b.of(slot), {arrived, complete});
  };
  if (!alone) receive(b.slot(folded, block(folded).count), output(block(folded)));
  for (int d = 0; d < steps; ++d) {
    const int partner = cube.partner(rank, d);
    if (d > 0 || !alone) b.send(partner, d, gathered(rank, d), {complete});
    receive(d, gathered(partner, d));
  }
  if (!alone) b.send(folded, 0, whole, {complete});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
