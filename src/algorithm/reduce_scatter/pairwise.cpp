// SPDX-License-Identifier: BSD-3-Clause
// Pairwise reduce-scatter: everyone sends each rank its block of the vector, and combines the P
// parts of its own block in the order of ranks. Each byte moves once; no rank does another's work.
//
//   P = 5:   0 -> 1 2 3 4    1 -> 2 3 4 0    2 -> 3 4 0 1    3 -> 4 0 1 2    4 -> 0 1 2 3
//            rank 2: (((x0 op x1) op x2) op x3) op x4, of block 2
//
// Steps: 1. Bytes: n (P-1)/P.
// Partial results stay in scratch memory, because in place the output lies where the input begins,
// which is still to be sent and read. Only the last one goes there, once all is sent. Empty blocks
// are sent too, as signals.
// Source: the pairwise exchange of Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.4;
// a slot for each message keeps the order of ranks.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::reduce_scatter {

namespace {

// The parts of the own block in the order of ranks, each once it is there.
Value part_of(Builder& b, int source, int rank, const Range& own) {
  if (source == rank) return {own};
  const SlotId slot = slot_of(source, rank);
  return {b.of(slot), b.wait(slot)};
}

}  // namespace

Schedule pairwise(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const schedule::Block block = schedule::block(shape, rank);
  const Range result = schedule::output(0, block.count);
  Builder b(shape, rank, 4 * ranks);
  for (int source = 0; source < ranks; ++source) {
    if (source != rank) b.slot(source, block.count);
  }
  std::vector<OpId> sends;
  for (int to = pattern::ring_next(ranks, rank); to != rank; to = pattern::ring_next(ranks, to)) {
    sends.push_back(b.send(to, slot_of(rank, to), input(schedule::block(shape, to))));
  }
  Value sum = part_of(b, 0, rank, input(block));
  if (ranks == 1) b.copy(result, sum.range);
  if (ranks == 1) return std::move(b).take();

  // In place, the last rank's own part may overlap the output.
  const bool ends_with_copy = rank == ranks - 1 && block.offset < block.count;
  const Range partial = ranks > 2 || ends_with_copy ? b.scratch(block.count) : Range{};
  for (int source = 1; source < ranks; ++source) {
    const bool is_last = source == ranks - 1 && !ends_with_copy;
    const Value part = part_of(b, source, rank, input(block));
    const Range target = is_last ? result : partial;
    sum = {target, b.reduce(target, sum.range, part.range, {sum.ready, part.ready})};
  }
  if (ends_with_copy) b.copy(result, partial, {sum.ready});
  for (const OpId sent : sends) b.also_after(sent);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
