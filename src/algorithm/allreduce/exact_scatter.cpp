// SPDX-License-Identifier: BSD-3-Clause
// Exact scatter: the vector is cut into P blocks, one for each rank. Everyone sends each rank its
// block; that rank sums the P parts in one step and multicasts the result. No partial sums travel,
// so a floating-point sum is rounded once.
//
//   P = 3, blocks a b c:   to 0: a1 a2   to 1: b0 b2   to 2: c0 c1
//                          0: a = a0 + a1 + a2 -> 1 2     1: b -> 0 2     2: c -> 0 1
//
// Steps: 2. Bytes: n. Each byte is combined once, and no rank does another's work.
// One rank finishes each block, so all get the same bits. Empty blocks are sent too, as signals.
// Source: the reduce-scatter and allgather of Thakur, Rabenseifner and Gropp 2005, section 4.5, in
// one step each; the exact sums of Collange, Defour, Graillat and Iakymchuk 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"
#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::allreduce {

Schedule exact_scatter(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const pattern::Blocks blocks(shape.count, ranks);
  const auto part = [&](int block) {
    return schedule::input(blocks.offset(block), blocks.count(block));
  };
  const auto result = [&](int block) {
    return schedule::output(blocks.offset(block), blocks.count(block));
  };
  Builder b(shape, rank, 4 * ranks);
  const std::vector<OpId> sends = exact::exchange_blocks(b, ranks, rank, part);
  // Behind them, a slot for each other rank's result.
  for (int distance = 1; distance < ranks; ++distance) {
    const int source = (rank - distance + ranks) % ranks;
    b.slot(source, blocks.count(source));
  }
  const OpId summed =
      exact::sum_up_to(b, result(rank), part(rank), rank, ranks - 1,
                       [&](int source) { return exact::slot_from(ranks, source, rank); }, {});
  send_to_each(b, ranks - 1, {result(rank), summed}, [&](int i) {
    return schedule::Target{(rank + i + 1) % ranks, ranks - 1 + i};
  });
  for (int distance = 1; distance < ranks; ++distance) {
    const int source = (rank - distance + ranks) % ranks;
    const SlotId slot = static_cast<SlotId>(ranks + distance - 2);
    // In place, the result overwrites the part that was sent to its rank.
    const OpId sent = sends[static_cast<std::size_t>(ranks - distance - 1)];
    b.copy(result(source), b.of(slot), {b.wait(slot), sent});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
