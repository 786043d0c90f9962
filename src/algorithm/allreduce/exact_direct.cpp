// SPDX-License-Identifier: BSD-3-Clause
// Exact direct allreduce: everyone multicasts its vector to all others, and every rank sums all of
// them in one step. No partial sums exist, so a floating-point sum is rounded once.
//
//   P = 3:   0 -> 1 2    1 -> 2 0    2 -> 0 1    then everyone: x0 + x1 + x2
//
// Steps: 1. Bytes: n. Each rank receives (P-1) n, and combines P vectors.
// All ranks compute the same, so all get the same bits.
// Source: a flat allgather, and the exact sums of Collange, Defour, Graillat and Iakymchuk 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"

namespace unisono::algorithm::allreduce {

Schedule exact_direct(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const Range input = schedule::input(0, shape.count);
  Builder b(shape, rank, ranks + 1);
  for (int distance = 1; distance < ranks; ++distance) {
    b.slot((rank - distance + ranks) % ranks, shape.count);
  }
  std::vector<OpId> sent;
  const auto target = [&](int i) { return schedule::Target{(rank + i + 1) % ranks, i}; };
  if (ranks > 1) sent.push_back(send_to_each(b, ranks - 1, {input}, target));
  exact::sum_up_to(
      b, schedule::output(0, shape.count), input, rank, ranks - 1,
      [&](int source) { return exact::slot_from(ranks, source, rank); }, sent);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
