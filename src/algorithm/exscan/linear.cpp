// SPDX-License-Identifier: BSD-3-Clause
// Linear exclusive scan: the sum of the ranks below travels up the ranks; each takes it as it is
// and sends it on with its own part on the right. The least traffic and work, but the last rank
// waits for all others. Rank 0 gets nothing.
//
//   P = 5:   0 -> 1 -> 2 -> 3 -> 4      rank 3 gets (x0 op x1) op x2
//
// Steps: P-1. Bytes: n.
// The sum for the next rank is made in scratch memory: in place, the result overwrites the own part
// once that is added.
// Source: the definition of MPI_Exscan, MPI 3.1, section 5.11.2, as a chain.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::exscan {

Schedule linear(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  const bool sends_on = rank + 1 < shape.ranks;
  Builder b(shape, rank, 4);
  if (rank == 0) {
    if (sends_on) b.send(1, 0, input);
    return std::move(b).take();
  }
  const SlotId slot = b.slot(rank - 1, shape.count);
  const OpId arrived = b.wait(slot);
  OpId summed = Builder::kNone;
  if (sends_on) {
    const Range sum = b.scratch(shape.count);
    summed = b.reduce(sum, b.of(slot), input, {arrived});
    b.send(rank + 1, 0, sum, {summed});
  }
  b.copy(schedule::output(0, shape.count), b.of(slot), {arrived, summed});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::exscan
