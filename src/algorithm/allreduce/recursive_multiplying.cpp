// SPDX-License-Identifier: BSD-3-Clause
// Recursive multiplying: the exchange of recursive doubling among k ranks a dimension instead of
// two. Everyone multicasts what it has combined so far to the k-1 others and combines what all of
// them have, in the order of ranks. All compute the same expression, so all end with the same bits.
// Fewer steps, and more to combine in each. Ranks that are beyond a power of k are folded onto a
// neighbour below, which plays for them.
//
//   P = 5, k = 4      fold          dimension 0                       release
//   0 = pos 0         0 <- 1: 01    0 2 3 4 to one another:           0 -> 1
//   2 = pos 1                       (((x0 op x1) op x2) op x3) op x4
//   3 = pos 2
//   4 = pos 3         (rank 1 is outside the grid)
//
// Steps: log_k P; floor(log_k P) + 2 if P is no power of k. Bytes: n a step, staged once.
// k = 2 is the pairwise exchange, k = P one step in which everyone gets all.
// Source: Ruefenacht, Bull and Booth, Parallel Computing 69, 2017.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/grid.hpp"

namespace unisono::algorithm::allreduce {

Schedule recursive_multiplying(const Shape& shape, const Parameters& parameters, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const int k = parameters.values[0];
  const pattern::FoldedGrid grid(shape.ranks, k);
  const int steps = grid.dimensions();
  const int position = grid.position(rank);
  const int leader = grid.leader(position);
  const SlotId folded_slots = steps * (k - 1);
  const int folded = grid.folded(position);
  if (rank != leader) {
    Builder b(shape, rank, 3);
    give_and_take(b, leader, folded_slots + rank - leader - 1, {input},
                  b.slot(leader, shape.count));
    return std::move(b).take();
  }
  Builder b(shape, rank, 2 * (folded_slots + folded) + steps + 2);
  // The other digits of a dimension, in their order; a slot each, dimension by dimension. Then one
  // a folded rank.
  int most_below = 0;
  for (int d = 0; d < steps; ++d) {
    const auto line = grid.line(position, d);
    most_below = std::max(most_below, line.digit);
    for (int i = 0; i < k; ++i) {
      if (i != line.digit) b.slot(grid.leader(line.at(i)), shape.count);
    }
  }
  for (int i = 1; i <= folded; ++i) b.slot(rank + i, shape.count);

  const Range scratch = most_below > 1 ? b.scratch(shape.count) : Range{};
  Value sum = combine_slots(b, {input}, output, folded_slots, folded);
  for (int d = 0; d < steps; ++d) {
    const auto line = grid.line(position, d);
    const SlotId first = d * (k - 1);
    const OpId sent = send_to_each(b, k - 1, sum, [&](int i) {
      const int to = i < line.digit ? i : i + 1;
      return schedule::Target{grid.leader(line.at(to)), first + slot_of(line.digit, to)};
    });
    // After the send, because it reads the range overwritten here.
    sum = combine_around(b, {sum.range, sent}, output, scratch, first, line.digit,
                         k - 1 - line.digit);
  }
  send_to_each(b, folded, sum, [&](int i) { return schedule::Target{rank + 1 + i, 0}; });
  if (shape.ranks == 1) b.copy(output, input);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
