// SPDX-License-Identifier: BSD-3-Clause
// Exact direct reduce-scatter: everyone sends each rank its block of the vector, and every rank
// sums the P parts of its own block in one step. No partial sums exist, so a floating-point sum is
// rounded once.
//
//   P = 3:   0 -> 1 2    1 -> 2 0    2 -> 0 1    rank 2: x0 + x1 + x2, of block 2
//
// Steps: 1. Bytes: (P-1) m.
// In place the output lies where the input begins, which is still to be sent. Where it overlaps the
// own block without being the same, the sum goes through scratch memory. Empty blocks are sent too,
// as signals.
// Source: the pairwise exchange of Thakur, Rabenseifner and Gropp 2005, section 4.4, with the exact
// sums of Collange, Defour, Graillat and Iakymchuk 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

Schedule exact_direct(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const auto block = [&](int peer) { return input(schedule::block(shape, peer)); };
  const Range own = block(rank);
  Builder b(shape, rank, 2 * ranks);
  const std::vector<OpId> sends = exact::exchange_blocks(b, ranks, rank, block);
  const auto slot_at = [&](int source) { return exact::slot_from(ranks, source, rank); };
  if (may_overlap(shape, rank)) {
    const Range sum = b.scratch(own.count);
    finish(b, {sum, exact::sum_up_to(b, sum, own, rank, ranks - 1, slot_at, {})}, sends);
  } else {
    exact::sum_up_to(b, schedule::output(0, own.count), own, rank, ranks - 1, slot_at, sends);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
