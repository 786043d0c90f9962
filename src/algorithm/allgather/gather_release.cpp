// SPDX-License-Identifier: BSD-3-Clause
// Gather and release: everyone sends its block to rank 0, which puts the vector together and
// multicasts it. Two steps and, at all ranks but one, three ops: the fewest turns where ranks
// outnumber cores. The whole vector passes rank 0: for short blocks.
//
//   P = 5:   1 2 3 4 -> 0,   then 0 => 1 2 3 4   (one multicast)
//
// Steps: 2. Bytes: P m at rank 0, staged once; m elsewhere.
// Source: the gather and multicast of Kini 2003 (RGM, sections 4.1.3 and 5.2.2), applied to
// allgather.
#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::allgather {

Schedule gather_release(const Shape& shape, const Parameters&, int rank) {
  const Range own = own_block(shape, rank);
  if (rank != 0) {
    Builder b(shape, rank, 3);
    give_and_take(b, 0, rank - 1, {own}, b.slot(0, whole(shape).count));
    return std::move(b).take();
  }
  Builder b(shape, rank, 2 * shape.ranks + 1);
  OpId complete = b.copy(place(shape, 0), own);
  for (int source = 1; source < shape.ranks; ++source) {
    const SlotId slot = b.slot(source, place(shape, source).count);
    const OpId arrived = b.wait(slot);
    complete = b.copy(place(shape, source), b.of(slot), {arrived, complete});
  }
  multicast_to_others(b, shape.ranks, rank, 0, {whole(shape), complete});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
