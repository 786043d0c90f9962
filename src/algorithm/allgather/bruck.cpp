// SPDX-License-Identifier: BSD-3-Clause
// Bruck: in step s everyone sends the first 2^s of the blocks it holds, its own and those of the
// ranks above it, cyclically, to the rank 2^s below. The fewest steps for any P, without folding.
// What a rank sends is one piece of its output unless it passes the last rank: such a rank gathers
// in scratch memory, where its own block comes first, and puts all in place at the end.
//
//   P = 5     step 0 (1 block, -1)   step 1 (2 blocks, -2)   step 2 (1 block, -4)
//   rank 0    0 1                    0 1 2 3                 0 1 2 3 4
//   rank 3    3 4                    3 4 0 1                 3 4 0 1 2
//   rank 4    4 0                    4 0 1 2                 4 0 1 2 3   (in scratch: it sends 4 0)
//
// Steps: ceil(log2 P). Bytes: (P-1) m.
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997.
#include <algorithm>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/dissemination.hpp"

namespace unisono::algorithm::allgather {

namespace {

// The places of `count` blocks from that of `first` on, cyclically: one piece or two.
struct Pieces {
  Range upper, lower;

  Pieces(const Shape& shape, int first, int count)
      : upper(place(shape, first, std::min(count, shape.ranks - first))),
        lower(place(shape, 0, std::max(count - (shape.ranks - first), 0))) {}
  std::int64_t size() const { return upper.count + lower.count; }
};

// Copies `source` to its final positions, once it may be read and after `before`.
OpId put(Builder& b, const Pieces& to, Value source, OpId before) {
  Range part = source.range;
  part.count = to.upper.count;
  const OpId done = b.copy(to.upper, part, {source.ready, before});
  if (to.lower.count == 0) return done;
  part.offset += part.count;
  part.count = to.lower.count;
  return b.copy(to.lower, part, {source.ready, done});
}

}  // namespace

Schedule bruck(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const int steps = pattern::dissemination_steps(ranks);
  const auto blocks_in = [&](int step) { return std::min(1 << step, ranks - (1 << step)); };
  const auto held = [&](int blocks) { return Pieces(shape, rank, blocks).size(); };
  int most_sent = 0;
  for (int step = 0; step < steps; ++step) most_sent = std::max(most_sent, blocks_in(step));
  const bool wraps = rank + most_sent > ranks;
  Builder b(shape, rank, 3 * steps + 4);

  // Slots: one a step. Where it wraps, all but those of the last step are gathered in scratch.
  const Range own = own_block(shape, rank);
  const int in_scratch = wraps ? 1 << (steps - 1) : 0;
  const Range base = wraps ? b.scratch(held(in_scratch)) : place(shape, rank);
  const auto part = [&](std::int64_t from, std::int64_t count) {
    Range range = base;
    range.offset += from;
    range.count = count;
    return range;
  };
  OpId complete = Builder::kNone;
  OpId sent = Builder::kNone;
  for (int step = 0; step < steps; ++step) {
    const int distance = 1 << step;
    const bool only_own = blocks_in(step) == 1;
    const Value given =
        only_own ? Value{own, sent} : Value{part(0, held(blocks_in(step))), complete};
    const int target = pattern::dissemination_source(ranks, rank, step);
    sent = b.send(target, step, given.range, {given.ready});
    if (step == 0) complete = b.copy(part(0, own.count), own, {sent});
    const int source = pattern::dissemination_target(ranks, rank, step);
    const Pieces places(shape, source, blocks_in(step));
    const SlotId slot = b.slot(source, places.size());
    const OpId arrived = b.wait(slot);
    const bool to_scratch = wraps && step + 1 < steps;
    complete = to_scratch
                   ? b.copy(part(held(distance), places.size()), b.of(slot), {arrived, complete})
                   : put(b, places, {b.of(slot), arrived}, complete);
  }
  // After all sends, because in place it overwrites the input.
  if (wraps) put(b, Pieces(shape, rank, in_scratch), {base, complete}, sent);
  if (ranks == 1) b.copy(place(shape, rank), own);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
