// SPDX-License-Identifier: BSD-3-Clause
// Pairwise reduce-scatter: everyone sends each rank its block of the vector, and combines the P
// parts of its own block in the order of ranks. Each byte moves once; no rank does another's work.
//
//   P = 5:   0 -> 1 2 3 4    1 -> 2 3 4 0    2 -> 3 4 0 1    3 -> 4 0 1 2    4 -> 0 1 2 3
//            rank 2: (((x0 op x1) op x2) op x3) op x4, of block 2
//
// Steps: 1. Bytes: (P-1) m.
// Partial results stay in scratch memory, because in place the output lies where the input begins,
// which is still to be sent. Only the last one goes there, once all is sent. Empty blocks are sent
// too, as signals.
// Source: the pairwise exchange of Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.4;
// a slot for each message keeps the order of ranks.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

Schedule pairwise(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const Range own = input(schedule::block(shape, rank));
  Builder b(shape, rank, 4 * ranks);
  for (int source = 0; source < ranks; ++source) {
    if (source != rank) b.slot(source, own.count);
  }
  std::vector<OpId> sends;
  for (int to = pattern::ring_next(ranks, rank); to != rank; to = pattern::ring_next(ranks, to)) {
    sends.push_back(b.send(to, slot_of(rank, to), input(schedule::block(shape, to))));
  }
  // The own block's part of a rank, once it is there.
  const auto part_of = [&](int source) -> Value {
    if (source == rank) return {own};
    const SlotId slot = slot_of(source, rank);
    return {b.of(slot), b.wait(slot)};
  };
  Value sum = part_of(0);
  const Range partial = ranks > 2 ? b.scratch(own.count) : Range{};
  for (int source = 1; source + 1 < ranks; ++source) {
    const Value part = part_of(source);
    sum = {partial, b.reduce(partial, sum.range, part.range, {sum.ready, part.ready})};
  }
  if (ranks == 1) {
    finish(b, sum, sends);
  } else {
    finish(b, shape, rank, sum, part_of(ranks - 1), sends);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
