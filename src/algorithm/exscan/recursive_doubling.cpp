// SPDX-License-Identifier: BSD-3-Clause
// Recursive doubling: in step k a rank sends what it has combined, itself included, to the rank 2^k
// above it, and puts what comes from 2^k below on the left of it, and of a second sum without
// itself, which is its result.
//
//   P = 5     result after step 0    step 1      step 2
//   1         0                      0           0
//   2         1                      (01)        (01)
//   3         2                      ((01)2)     ((01)2)
//   4         3                      ((12)3)     (0((12)3))
//
// Steps: ceil(log2 P). Bytes: n ceil(log2 P).
// The sum that is sent stays in scratch memory, and is made only while there is somebody to send it
// to. In place, the result overwrites the own part once that is sent and combined. Rank 0 gets
// nothing.
// Source: Hillis and Steele, CACM 29(12), 1986; the simultaneous binomial trees of Sanders and
// Träff, EuroPVM/MPI 2006.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/dissemination.hpp"

namespace unisono::algorithm::exscan {

Schedule recursive_doubling(const Shape& shape, const Parameters&, int rank) {
  const Range output = schedule::output(0, shape.count);
  const int steps = pattern::dissemination_steps(shape.ranks);
  Builder b(shape, rank, 4 * steps + 2);
  Value with_self{schedule::input(0, shape.count)};
  Value result;
  OpId own_read = Builder::kNone;  // the last op that reads the input
  OpId sent = Builder::kNone;
  for (int step = 0; step < steps; ++step) {
    const int distance = 1 << step;
    const bool sends = distance < shape.ranks - rank;
    if (sends) sent = b.send(rank + distance, step, with_self.range, {with_self.ready});
    if (step == 0) own_read = sent;
    if (rank < distance) continue;
    // Slots: one for each step, as long as there is a rank at that distance below.
    const SlotId slot = b.slot(rank - distance, shape.count);
    const OpId arrived = b.wait(slot);
    if (2 * distance < shape.ranks - rank) {
      const Range sum = step == 0 ? b.scratch(shape.count) : with_self.range;
      // After the send, because it reads the range overwritten here.
      const OpId summed =
          b.reduce(sum, b.of(slot), with_self.range, {arrived, with_self.ready, sent});
      if (step == 0) own_read = summed;
      with_self = {sum, summed};
    }
    if (step == 0) {
      result = {b.of(slot), arrived};
    } else {
      result = {output,
                b.reduce(output, b.of(slot), result.range, {arrived, result.ready, own_read})};
    }
  }
  if (rank == 1) b.copy(output, result.range, {result.ready, own_read});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::exscan
