// SPDX-License-Identifier: BSD-3-Clause
// Exact scatter reduction: the vector is cut into P blocks, one for each rank. Everyone sends each
// rank its block; that rank sums the P parts in one step and sends the result to the root. No
// partial sums travel, so a floating-point sum is rounded once.
//
//   P = 3, root 0, blocks a b c:   to 0: a1 a2   to 1: b0 b2   to 2: c0 c1
//                                  1: b = b0 + b1 + b2 -> 0     2: c -> 0
//
// Steps: 2. Bytes: n. Each byte is combined once, and no rank does another's work.
// Source: Rabenseifner 2004, in one step each way; the exact sums of Collange, Defour, Graillat and
// Iakymchuk 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"
#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::reduce {

Schedule exact_scatter(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const pattern::Blocks blocks(shape.count, ranks);
  const auto part = [&](int block) {
    return schedule::input(blocks.offset(block), blocks.count(block));
  };
  Builder b(shape, rank, 4 * ranks);
  const std::vector<OpId> sends = exact::exchange_blocks(b, ranks, rank, part);
  const bool is_root = rank == shape.root;
  // Behind them, the root has a slot for each other rank's result.
  for (int source = 0; is_root && source < ranks; ++source) {
    if (source != rank) b.slot(source, blocks.count(source));
  }
  const Range result = is_root ? schedule::output(blocks.offset(rank), blocks.count(rank))
                               : b.scratch(blocks.count(rank));
  const OpId summed =
      exact::sum_up_to(b, result, part(rank), rank, ranks - 1,
                       [&](int source) { return exact::slot_from(ranks, source, rank); }, {});
  if (!is_root) {
    b.send(shape.root, ranks - 1 + slot_of(rank, shape.root), result, {summed});
    return std::move(b).take();
  }
  for (int source = 0; source < ranks; ++source) {
    if (source == rank) continue;
    const SlotId slot = ranks - 1 + slot_of(source, rank);
    // In place, the result overwrites the part that was sent to its rank.
    const OpId sent = sends[static_cast<std::size_t>((source - rank + ranks) % ranks - 1)];
    b.copy(schedule::output(blocks.offset(source), blocks.count(source)), b.of(slot),
           {b.wait(slot), sent});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
