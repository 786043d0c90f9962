// SPDX-License-Identifier: BSD-3-Clause
// Bruck: in step s everyone sends the first 2^s of the blocks it holds, its own and those of the
// ranks above it, cyclically, to the rank 2^s below. The fewest steps for any P, without folding.
// What a rank sends is one piece of its output unless it passes the last rank: such a rank gathers
// in scratch memory, where its own block comes first, and puts all in place at the end.
//
// The radix k sends to k-1 ranks in a step: k = 2 is bruck, any other one is kbruck. In step s, a
// rank then sends the first k^s blocks k^s, 2 k^s, ... ranks below.
//
//   P = 5     step 0 (1 block, -1)   step 1 (2 blocks, -2)   step 2 (1 block, -4)
//   rank 0    0 1                    0 1 2 3                 0 1 2 3 4
//   rank 3    3 4                    3 4 0 1                 3 4 0 1 2
//   rank 4    4 0                    4 0 1 2                 4 0 1 2 3   (in scratch: it sends 4 0)
//
// Steps: ceil(log_k P). Bytes: (P-1) m at the most, as a step's messages have the same blocks.
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997.
#include <algorithm>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"

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

Schedule with_radix(const Shape& shape, std::int64_t radix, int rank) {
  const std::int64_t ranks = shape.ranks;
  const auto held = [&](std::int64_t blocks) {
    return Pieces(shape, rank, static_cast<int>(blocks)).size();
  };
  // The blocks that a rank sends `distance` below, and the stride of the last step.
  const auto blocks_to = [&](std::int64_t stride, std::int64_t distance) {
    return std::min(stride, ranks - distance);
  };
  std::int64_t most_sent = 0, last_stride = 1;
  for (std::int64_t stride = 1; stride < ranks; stride *= radix) {
    most_sent = std::max(most_sent, blocks_to(stride, stride));
    last_stride = stride;
  }
  const bool wraps = rank + most_sent > ranks;
  Builder b(shape, rank, 16);

  // Slots: one for each step and peer. Where it wraps, all but those of the last step are gathered
  // in scratch.
  const Range own = own_block(shape, rank);
  const std::int64_t in_scratch = wraps ? last_stride : 0;
  const Range base = wraps ? b.scratch(held(in_scratch)) : place(shape, rank);
  const auto part = [&](std::int64_t from, std::int64_t count) {
    Range range = base;
    range.offset += from;
    range.count = count;
    return range;
  };
  const auto above = [&](std::int64_t distance) {
    return static_cast<int>((rank + distance) % ranks);
  };
  OpId complete = Builder::kNone;
  OpId sent = Builder::kNone;
  SlotId slot_there = 0;
  for (std::int64_t stride = 1; stride < ranks; stride *= radix) {
    const std::int64_t peers = std::min(radix - 1, (ranks - 1) / stride);
    // All peers get `stride` blocks, but in the last step the furthest one may get fewer.
    const auto send_blocks = [&](std::int64_t blocks, std::int64_t first, std::int64_t count) {
      if (count == 0) return;
      const Value given = blocks == 1 ? Value{own, sent} : Value{part(0, held(blocks)), complete};
      sent = send_to_each(b, static_cast<int>(count), given, [&](int i) {
        return schedule::Target{above(ranks - (first + i) * stride), slot_there++};
      });
    };
    const bool has_short = blocks_to(stride, peers * stride) < stride;
    send_blocks(stride, 1, has_short ? peers - 1 : peers);
    if (has_short) send_blocks(blocks_to(stride, peers * stride), peers, 1);
    if (stride == 1) complete = b.copy(part(0, own.count), own, {sent});
    for (std::int64_t peer = 1; peer <= peers; ++peer) {
      const int source = above(peer * stride);
      const Pieces places(shape, source, static_cast<int>(blocks_to(stride, peer * stride)));
      const SlotId slot = b.slot(source, places.size());
      const OpId arrived = b.wait(slot);
      complete = wraps && stride < last_stride ? b.copy(part(held(peer * stride), places.size()),
                                                        b.of(slot), {arrived, complete})
                                               : put(b, places, {b.of(slot), arrived}, complete);
    }
  }
  // After all sends, because in place it overwrites the input.
  if (wraps) put(b, Pieces(shape, rank, static_cast<int>(in_scratch)), {base, complete}, sent);
  if (ranks == 1) b.copy(place(shape, rank), own);
  return std::move(b).take();
}

}  // namespace

Schedule bruck(const Shape& shape, const Parameters&, int rank) {
  return with_radix(shape, 2, rank);
}

Schedule kbruck(const Shape& shape, const Parameters& parameters, int rank) {
  return with_radix(shape, parameters.values[0], rank);
}

}  // namespace unisono::algorithm::allgather
