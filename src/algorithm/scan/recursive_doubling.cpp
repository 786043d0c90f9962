// SPDX-License-Identifier: BSD-3-Clause
// Recursive doubling: in step k a rank sends what it has combined to the rank 2^k above it, and
// puts what comes from 2^k below on the left of it. After step k it has combined 2^(k+1) ranks:
// itself and those below, as far as there are any.
//
//   P = 5     step 0      step 1          step 2
//   0         0           0               0
//   1         (01)        (01)            (01)
//   2         (12)        (0(12))         (0(12))
//   3         (23)        ((01)(23))      ((01)(23))
//   4         (34)        ((12)(34))      (0((12)(34)))
//
// Steps: ceil(log2 P). Bytes: n ceil(log2 P).
// Source: Hillis and Steele, CACM 29(12), 1986; the simultaneous binomial trees of Sanders and
// Träff, EuroPVM/MPI 2006.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/dissemination.hpp"

namespace unisono::algorithm::scan {

Schedule recursive_doubling(const Shape& shape, const Parameters&, int rank) {
  const Range output = schedule::output(0, shape.count);
  const int steps = pattern::dissemination_steps(shape.ranks);
  Builder b(shape, rank, 3 * steps + 1);
  Value sum{schedule::input(0, shape.count)};
  OpId sent = Builder::kNone;
  for (int step = 0; step < steps; ++step) {
    const int distance = 1 << step;
    if (distance < shape.ranks - rank) sent = b.send(rank + distance, step, sum.range, {sum.ready});
    if (rank < distance) continue;
    // Slots: one for each step, as long as there is a rank at that distance below.
    const SlotId slot = b.slot(rank - distance, shape.count);
    const OpId arrived = b.wait(slot);
    // After the send, because it reads the range overwritten here.
    sum = {output, b.reduce(output, b.of(slot), sum.range, {arrived, sum.ready, sent})};
  }
  if (rank == 0) b.copy(output, sum.range, {sent});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scan
