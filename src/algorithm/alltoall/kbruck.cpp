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

// The distances whose digit of this stride has such a value, rising: `stride` of them in a row, in
// each radix * stride.
template <class Visit>
void for_each_distance(std::int64_t ranks, std::int64_t radix, std::int64_t stride,
                       std::int64_t digit, const Visit& visit) {
  for (std::int64_t run = digit * stride; run < ranks; run += radix * stride) {
    const std::int64_t end = std::min(run + stride, ranks);
    for (std::int64_t distance = run; distance < end; ++distance) {
      visit(static_cast<std::size_t>(distance));
    }
  }
}

// The blocks of a message: those that lie side by side are one.
class Runs {
 public:
  void clear() {
    runs_.clear();
    count_ = 0;
  }
  void add(const Value& block) {
    count_ += block.range.count;
    if (!runs_.empty() && follows(runs_.back().range, block.range)) {
      runs_.back().range.count += block.range.count;
    } else {
      runs_.push_back(block);
    }
  }
  std::int64_t count() const { return count_; }

  // As one message, which is put together after `before`.
  Value one_message(Builder& b, OpId before) const {
    if (runs_.size() == 1) return runs_.front();
    Range rest = b.scratch(count_);
    const Range message = rest;
    for (const Value& run : runs_) {
      rest.count = run.range.count;
      before = b.copy(rest, run.range, {run.ready, before});
      rest.offset += rest.count;
    }
    return {message, before};
  }

 private:
  std::vector<Value> runs_;
  std::int64_t count_ = 0;
};

}  // namespace

Schedule kbruck(const Shape& shape, const Parameters& parameters, int rank) {
  const std::int64_t ranks = shape.ranks, radix = parameters.values[0], m = shape.count;
  const auto rank_above = [&](std::int64_t distance) {
    return static_cast<int>((rank + distance) % ranks);
  };
  Builder b(shape, rank, 4 * shape.ranks);
  std::vector<Value> held;  // by the distance that it has to go
  held.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t distance = 0; distance < ranks; ++distance) {
    held.push_back({schedule::input(rank_above(distance) * m, m)});
  }
  OpId sent = Builder::kNone;
  SlotId slots = 0;
  Runs blocks;
  for (std::int64_t stride = 1; stride < ranks; stride *= radix) {
    // Slots: one for each step and digit. A send comes after those before, and so after all reads.
    const auto has_digit = [&](std::int64_t digit) {
      return digit < radix && digit * stride < ranks;
    };
    for (std::int64_t digit = 1; has_digit(digit); ++digit) {
      blocks.clear();
      for_each_distance(ranks, radix, stride, digit,
                        [&](std::size_t distance) { blocks.add(held[distance]); });
      const SlotId slot = b.slot(rank_above(ranks - digit * stride), blocks.count());
      const Value message = blocks.one_message(b, sent);
      sent = b.send(rank_above(digit * stride), slot, message.range, {message.ready, sent});
    }
    for (std::int64_t digit = 1; has_digit(digit); ++digit) {
      const SlotId slot = slots++;
      const OpId arrived = b.wait(slot);
      Range place = b.of(slot);
      place.count = m;
      for_each_distance(ranks, radix, stride, digit, [&](std::size_t distance) {
        held[distance] = {place, arrived};
        place.offset += m;
      });
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
