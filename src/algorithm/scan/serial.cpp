// SPDX-License-Identifier: BSD-3-Clause
// Serial scan: everyone sends its vector to rank 0, which combines them in the order of ranks, and
// sends each rank the sum that it wants. Rank 0 alone applies the operator, so that no result
// depends on another processor's arithmetic.
//
//   P = 4:   1 2 3 -> 0    0: s = x0 op x1, -> 1    s = s op x2, -> 2    s = s op x3, -> 3
//
// The row exact-serial makes each sum in one step, so that it is rounded once.
// Steps: 2. Bytes: (P-1) n, all of them sent by rank 0.
// Source: the definition of MPI_Scan, MPI 3.1, section 5.11.1; section 4.5 of Petrini et al., HotI
// 2003 (one process computes the result, then distributes it).
#include <span>

#include "algorithm/algorithm.hpp"
#include "algorithm/serial.hpp"

namespace unisono::algorithm::scan {

namespace {

Schedule by_rank_zero(const Shape& shape, int rank, bool is_exact) {
  const Range input = schedule::input(0, shape.count);
  Builder b(shape, rank, 3 * shape.ranks);
  if (rank != 0) {
    const SlotId slot = b.slot(0, shape.count);
    give_and_take(b, 0, slot_of(rank, 0), {input}, slot);
    return std::move(b).take();
  }
  for (int source = 1; source < shape.ranks; ++source) b.slot(source, shape.count);
  algorithm::serial::Prefixes prefixes(b, is_exact, input);
  OpId sent = Builder::kNone;
  for (int target = 1; target < shape.ranks; ++target) {
    prefixes.add(sent);
    sent = b.send(target, 0, prefixes.sum().range, {prefixes.sum().ready});
  }
  const Range output = schedule::output(0, shape.count);
  if (is_exact) {
    // In place it overwrites the input, which the other sums read.
    b.sum(output, std::span(&input, 1), {prefixes.sum().ready});
  } else {
    b.copy(output, input);
  }
  return std::move(b).take();
}

}  // namespace

Schedule serial(const Shape& shape, const Parameters&, int rank) {
  return by_rank_zero(shape, rank, false);
}

Schedule exact_serial(const Shape& shape, const Parameters&, int rank) {
  return by_rank_zero(shape, rank, true);
}

}  // namespace unisono::algorithm::scan
