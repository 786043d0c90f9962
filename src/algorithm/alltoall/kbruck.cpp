// SPDX-License-Identifier: BSD-3-Clause
// Bruck's all-to-all with radix k: the distance that a block has to go is a number of base k. In
// step i a rank sends, for each value v of digit i but 0, all blocks with that digit in one
// message to the rank v k^i above. A larger k takes fewer steps and moves each block less often,
// but sends k-1 messages in a step. k = 2 is bruck, k = P is linear.
//
//   P = 5, k = 3: what rank r sends, by distance           to
//   step 0   1 (own), 4 (own)    and    2 (own)            r + 1 and r + 2
//   step 1   3 (own), 4 (came in step 0)                   r + 3
//
// Steps: ceil(log_k P). Bytes: m P (k-1)/k ceil(log_k P) at the most.
// Blocks go from the slots in which they came into the next message and, in the end, to their
// places. In place, the output is written once all is sent. Source: Bruck, Ho, Kipnis, Upfal and
// Weathersby, IEEE TPDS 8(11), 1997, section 3.
#include <algorithm>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"

namespace unisono::algorithm::alltoall {

namespace {

// The blocks of these values, one after another, after `before`.
Value one_message(Builder& b, const std::vector<Value>& blocks, OpId before) {
  std::vector<Value> runs;
  std::int64_t count = 0;
  for (const Value& block : blocks) {
    count += block.range.count;
    if (!runs.empty() && follows(runs.back().range, block.range)) {
      runs.back().range.count += block.range.count;
    } else {
      runs.push_back(block);
    }
  }
  if (runs.size() == 1) return runs.front();
  Range rest = b.scratch(count);
  const Range message = rest;
  for (const Value& run : runs) {
    rest.count = run.range.count;
    before = b.copy(rest, run.range, {run.ready, before});
    rest.offset += rest.count;
  }
  return {message, before};
}

}  // namespace

Schedule kbruck(const Shape& shape, const Parameters& parameters, int rank) {
  const std::int64_t ranks = shape.ranks, radix = parameters.values[0], m = shape.count;
  const auto rank_above = [&](std::int64_t distance) {
    return static_cast<int>((rank + distance) % ranks);
  };
  Builder b(shape, rank, 4 * shape.ranks);
  std::vector<Value> held;  // by the distance that it has to go
  for (std::int64_t distance = 0; distance < ranks; ++distance) {
    held.push_back({schedule::input(rank_above(distance) * m, m)});
  }
  OpId sent = Builder::kNone;
  SlotId slots = 0;
  for (std::int64_t stride = 1; stride < ranks; stride *= radix) {
    // Slots: one for each step and digit. A send comes after those before, and so after all reads.
    std::vector<std::vector<std::size_t>> moved;
    for (std::int64_t digit = 1; digit < radix && digit * stride < ranks; ++digit) {
      std::vector<Value> blocks;
      moved.emplace_back();
      // The distances with this digit: `stride` of them in a row, in each radix * stride.
      for (std::int64_t run = digit * stride; run < ranks; run += radix * stride) {
        for (std::int64_t distance = run; distance < std::min(run + stride, ranks); ++distance) {
          moved.back().push_back(static_cast<std::size_t>(distance));
          blocks.push_back(held[moved.back().back()]);
        }
      }
      const SlotId slot =
          b.slot(rank_above(ranks - digit * stride), static_cast<std::int64_t>(blocks.size()) * m);
      const Value message = one_message(b, blocks, sent);
      sent = b.send(rank_above(digit * stride), slot, message.range, {message.ready, sent});
    }
    for (const auto& distances : moved) {
      const SlotId slot = slots++;
      const OpId arrived = b.wait(slot);
      Range place = b.of(slot);
      place.count = m;
      for (const std::size_t distance : distances) {
        held[distance] = {place, arrived};
        place.offset += m;
      }
    }
  }
  b.copy(schedule::output(rank * m, m), schedule::input(rank * m, m));
  for (std::int64_t distance = 1; distance < ranks; ++distance) {
    const Value& block = held[static_cast<std::size_t>(distance)];
    b.copy(schedule::output(rank_above(ranks - distance) * m, m), block.range, {block.ready, sent});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::alltoall
