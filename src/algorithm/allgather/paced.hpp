// SPDX-License-Identifier: BSD-3-Clause
// Paced rounds: the direct strategies for fat trees give a block to one peer after another, in
// steps that are free of contention as long as all ranks are in the same step. Kumar and Kalé keep
// them together with a barrier after each message, or after several (less barriers, 4.6). Here a
// rank waits for the messages of a batch before it sends the next batch: that keeps it within a
// step of those it hears from, and costs no further message. A batch is staged once. Used by one
// build function of this folder and dropped.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::allgather {

// One message each way: the target of the carried block, and the source and origin of the block
// that arrives at the same time.
struct Hop {
  int target = -1, source = -1, origin = -1;
};
inline constexpr int kMostHops = 8;  // in a round

class Paced {
 public:
  // All ranks make the same rounds of equally many hops: the slots are numbered hop by hop.
  Paced(Builder& builder, const Shape& shape, int rank, int batch)
      : b_(builder), shape_(shape), batch_(static_cast<std::size_t>(batch)) {
    unplaced_[0] = {place(shape, rank), {own_block(shape, rank)}};
  }

  // Gives `carried` to all targets, batch by batch, and returns the block that came with the last
  // hop.
  Value round(std::span<const Hop> hops, Value carried) {
    for (std::size_t begin = 0; begin < hops.size(); begin += batch_) {
      exchange(hops.subspan(begin, std::min(batch_, hops.size() - begin)), carried.range);
    }
    return hops.empty() ? carried : unplaced_[unplaced_count_ - 1].block;
  }

  // Copies arrived blocks to the output; at first the rank's own block.
  void place_blocks() {
    for (const Unplaced& each : std::span(unplaced_).first(unplaced_count_)) {
      b_.copy(each.to, each.block.range, {each.block.ready});
    }
    unplaced_count_ = 0;
  }

 private:
  struct Unplaced {
    Range to;
    Value block;
  };

  void exchange(std::span<const Hop> hops, const Range& carried) {
    send_to_each(b_, static_cast<int>(hops.size()), {carried, arrived_}, [&](int i) {
      return schedule::Target{hops[static_cast<std::size_t>(i)].target, next_slot_ + i};
    });
    place_blocks();  // of the batch before, while this one is on its way
    for (const Hop& hop : hops) {
      const Range to = place(shape_, hop.origin);
      const SlotId slot = b_.slot(hop.source, to.count);
      arrived_ = b_.wait(slot, {arrived_});
      unplaced_[unplaced_count_++] = {to, {b_.of(slot), arrived_}};
    }
    next_slot_ += static_cast<SlotId>(hops.size());
  }

  Builder& b_;
  const Shape& shape_;
  std::size_t batch_;
  SlotId next_slot_ = 0;
  OpId arrived_ = Builder::kNone;  // the last of all waits
  std::array<Unplaced, kMostHops> unplaced_;
  std::size_t unplaced_count_ = 1;
};

}  // namespace unisono::algorithm::allgather
