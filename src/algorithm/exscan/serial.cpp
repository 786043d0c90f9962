// SPDX-License-Identifier: BSD-3-Clause
// Serial exclusive scan: all but the last rank send their vectors to rank 0, which combines them in
// the order of ranks, and sends each rank the sum of those below it. Rank 0 alone applies the
// operator, so no result depends on another processor's arithmetic. Rank 0 gets nothing.
//
//   P = 4:   1 2 -> 0    0: x0 -> 1    s = x0 op x1, -> 2    s = s op x2, -> 3
//
// The row exact-serial makes each sum in one step, so that it is rounded once.
// Steps: 2. Bytes: (P-1) n, all of them sent by rank 0.
// Source: the definition of MPI_Exscan, MPI 3.1, section 5.11.2; section 4.5 of Petrini et al.,
// HotI 2003 (one process computes the result, then distributes it).
#include "algorithm/serial.hpp"
#include "algorithm/algorithm.hpp"

namespace unisono::algorithm::exscan {

namespace {

Schedule by_rank_zero(const Shape& shape, int rank, bool is_exact) {
  const Range input = schedule::input(0, shape.count);
  Builder b(shape, rank, 3 * shape.ranks);
  const int last = shape.ranks - 1;
  if (rank != 0) {
    const SlotId slot = b.slot(0, shape.count);
    if (rank < last) {
      give_and_take(b, 0, slot_of(rank, 0), {input}, slot);
    } else {
      b.copy(schedule::output(0, shape.count), b.of(slot), {b.wait(slot)});
    }
    return std::move(b).take();
  }
  for (int source = 1; source < last; ++source) b.slot(source, shape.count);
  algorithm::serial::Prefixes prefixes(b, is_exact, input);
  OpId sent = Builder::kNone;
  for (int target = 1; target <= last; ++target) {
    if (target == 1) {
      prefixes.round_first();
    } else {
      prefixes.add(sent);
    }
    sent = b.send(target, 0, prefixes.sum().range, {prefixes.sum().ready});
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

}  // namespace unisono::algorithm::exscan
