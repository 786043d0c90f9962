// SPDX-License-Identifier: BSD-3-Clause
// Exact release: everyone sends its vector to rank 0, which sums all of them in one step and
// multicasts the result. No partial sums exist, so a floating-point sum is rounded once.
//
//   P = 4:   1 2 3 -> 0    0: x0 + x1 + x2 + x3    0 -> 1 2 3
//
// Steps: 2. Bytes: n. One rank combines for all, so all get the same bits.
// Source: a flat gather-release, and the exact sums of Collange, Defour, Graillat and Iakymchuk
// 2015.
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"

namespace unisono::algorithm::allreduce {

Schedule exact_release(const Shape& shape, const Parameters&, int rank) {
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank, shape.ranks + 1);
  if (rank != 0) {
    const SlotId slot = b.slot(0, shape.count);
    give_and_take(b, 0, slot_of(rank, 0), {input}, slot);
    return std::move(b).take();
  }
  for (int source = 1; source < shape.ranks; ++source) b.slot(source, shape.count);
  const OpId summed = exact::sum_up_to(b, output, input, rank, shape.ranks - 1,
                                       [](int source) { return slot_of(source, 0); }, {});
  send_to_each(b, shape.ranks - 1, {output, summed}, [](int i) {
    return schedule::Target{i + 1, 0};
  });
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
