// SPDX-License-Identifier: BSD-3-Clause
// Exact direct scan: everyone multicasts its vector to all higher ranks, and every rank sums those
// of the lower ranks and its own in one step. No partial sums exist, so a floating-point sum is
// rounded once.
//
//   P = 4:   0 -> 1 2 3    1 -> 2 3    2 -> 3    rank 2: x0 + x1 + x2
//
// Steps: 1. Bytes: n. The last rank receives (P-1) n.
// Source: the definition of MPI_Scan, MPI 3.1, section 5.11.1, with the exact sums of Collange,
// Defour, Graillat and Iakymchuk 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"

namespace unisono::algorithm::scan {

Schedule exact_direct(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  Builder b(shape, rank, rank + 2);
  for (int source = 0; source < rank; ++source) b.slot(source, shape.count);
  const OpId sent = send_to_each(b, shape.ranks - 1 - rank, {input}, [&](int i) {
    return schedule::Target{rank + 1 + i, rank};
  });
  const OpId ready[] = {sent};
  exact::sum_up_to(
      b, schedule::output(0, shape.count), input, rank, rank,
      [](int source) { return static_cast<SlotId>(source); }, ready);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scan
