// SPDX-License-Identifier: BSD-3-Clause
// Linear scan: the sum travels up the ranks, and each rank adds its own part on the right. The
// least traffic and work of all scans, but the last rank waits for all others.
//
//   P = 5:   0 -> 1 -> 2 -> 3 -> 4      rank 2 gets (x0 op x1) op x2
//
// Steps: P-1. Bytes: n.
// Source: the definition of MPI_Scan, MPI 3.1, section 5.11.1, as a chain.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::scan {

Schedule linear(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  const bool sends_on = rank + 1 < shape.ranks;
  Builder b(shape, rank, 3);
  if (rank == 0) {
    const OpId sent = sends_on ? b.send(1, 0, input) : Builder::kNone;
    b.copy(output, input, {sent});
    return std::move(b).take();
  }
  const SlotId slot = b.slot(rank - 1, shape.count);
  const OpId arrived = b.wait(slot);
  const OpId summed = b.reduce(output, b.of(slot), input, {arrived});
  if (sends_on) b.send(rank + 1, 0, output, {summed});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scan
