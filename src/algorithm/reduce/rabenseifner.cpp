// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, then gather (Rabenseifner): recursive halving leaves 1/P of the result to
// everyone; a binomial tree gathers the pieces at the root, in the same dimensions backwards. Of
// the two in a dimension the one that is further from the root sends all it holds, which is one
// piece of the vector. Little to combine and to send: for long vectors.
//
//   P = 5, root 0     dimension 0          dimension 1        gather 1    gather 0
//   0 = pos 0         0: lower half, 1     0 <-> 3            3 -> 0      2 -> 0
//   1 = pos 0 too     2: upper half           of the lower
//   2 = pos 1         3: lower half        2 <-> 4            4 -> 2
//   3 = pos 2         4: upper half           of the upper
//   4 = pos 3         1 gives its halves to 0 and 2
//
// The order of ranks is kept, and is the same whichever the root is, so that its bits are.
// Steps: 2 floor(log2 P). Bytes: n (M-1)/M + n/2.
// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#include "algorithm/pattern/cube.hpp"
#include "algorithm/reduce/halving.hpp"

namespace unisono::algorithm::reduce {

Schedule rabenseifner(const Shape& shape, const Parameters&, int rank) {
  const int steps = pattern::FoldedCube(shape.ranks).dimensions();
  const pattern::PairedRanks paired(shape.ranks, 1 << steps, shape.root);
  const Halving halving(shape, paired, steps, 0);
  Builder b(shape, rank, 5 * steps + 4);
  if (shape.ranks == 1) {
    b.copy(schedule::output(0, shape.count), schedule::input(0, shape.count));
    return std::move(b).take();
  }
  if (!paired.leads(rank)) {
    halving.give_away(b, rank);
    return std::move(b).take();
  }
  const int position = paired.position(rank);
  const Sums sums = rank == shape.root ? Sums{schedule::output(0, shape.count), 0}
                                       : halving.scratch_sums(b, position);
  Value sum = halving.run(b, position, sums);
  // Slots, after those of the halving: one a dimension, backwards. A rank is done when it has sent.
  const int from_root = position ^ paired.position(shape.root);
  for (int d = steps - 1; d >= 0; --d) {
    const int partner = position ^ (1 << d);
    if ((from_root >> d & 1) != 0) {
      b.send(paired.leader(partner), halving.slots(partner) + steps - 1 - d,
             sums.at(halving.piece(position, d + 1)), {sum.ready});
      break;
    }
    const pattern::HalvingRange piece = halving.piece(partner, d + 1);
    const SlotId slot = b.slot(paired.leader(partner), piece.count);
    const OpId arrived = b.wait(slot);
    sum.ready = b.copy(sums.at(piece), b.of(slot), {arrived, sum.ready});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
