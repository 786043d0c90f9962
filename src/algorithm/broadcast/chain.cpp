// SPDX-License-Identifier: BSD-3-Clause
// Chain: the vector is cut into segments, which follow one another from the root through all ranks;
// each rank passes a segment on as soon as it is there and copies it afterwards. Once the chain is
// full, every link carries a segment at once: the least bytes a rank, for very long vectors.
//
//   P = 5, root 2:   2 -> 3 -> 4 -> 0 -> 1     2 sends segment s+1 while 3 sends segment s
//
// Steps: P-1, and a segment's time for each further segment. Bytes: n.
// Source: the pipeline or linear array of van de Geijn; Chan, Heimlich, Purkayastha and van de
// Geijn, CCPE 19(13), 2007.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::broadcast {

Schedule chain(const Shape& shape, const Parameters& parameters, int rank) {
  const int next = pattern::ring_next(shape.ranks, rank);
  const int segments = pattern::segments_of(shape.count, parameters.values[0]);
  const pattern::Blocks blocks(shape.count, segments);
  Builder b(shape, rank, 3 * segments);
  // Slots: one a segment.
  for (int i = 0; i < segments; ++i) {
    Value segment{schedule::input(blocks.offset(i), blocks.count(i))};
    if (rank != shape.root) {
      const SlotId slot = b.slot(pattern::ring_previous(shape.ranks, rank), blocks.count(i));
      segment = {b.of(slot), b.wait(slot)};
    }
    if (next != shape.root) b.send(next, i, segment.range, {segment.ready});
    if (rank != shape.root) {
      b.copy(schedule::output(blocks.offset(i), blocks.count(i)), segment.range, {segment.ready});
    }
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
