// SPDX-License-Identifier: BSD-3-Clause
// EventQueue: events in the order of their times; those of one time in the order in which they
// came. A radix heap: no event may be earlier than the last one taken, which a simulation never
// asks for, and each event moves at most once for each bit in which times differ. One thread at a
// time. Source: Ahuja, Mehlhorn, Orlin, Tarjan: "Faster algorithms for the shortest path problem",
// 1990.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.hpp"

namespace unisono::sim {

enum class EventKind : std::uint8_t { arrive, enter_network, settle_network, resume };

struct Event {
  std::uint64_t time = 0;  // picoseconds
  std::uint32_t rank = 0;  // whose program goes on
  std::uint32_t what = 0;  // slot, message or version
  EventKind kind = EventKind::arrive;
};
static_assert(sizeof(Event) <= 40, "a million ranks have many events");

class EventQueue {
 public:
  bool empty() const { return size_ == 0; }

  void push(const Event& event) {
    UNISONO_CHECK(event.time >= now_, "an event in the past");
    bucket_of(event.time).push_back(event);
    ++size_;
  }

  Event pop() {
    if (next_ == buckets_[0].size()) advance();
    --size_;
    return buckets_[0][next_++];
  }

 private:
  using Bucket = std::vector<Event>;

  Bucket& bucket_of(std::uint64_t time) {
    const auto number = static_cast<std::size_t>(64 - std::countl_zero(time ^ now_));
    used_ |= number > 0 ? std::uint64_t{1} << (number - 1) : 0;
    return buckets_[number];
  }

  // Brings the events of the next time into bucket 0. Equal times are always in one bucket, and
  // moving keeps their order.
  void advance() {
    buckets_[0].clear();
    next_ = 0;
    const auto number = static_cast<std::size_t>(std::countr_zero(used_)) + 1;
    UNISONO_CHECK(number < buckets_.size(), "no event is left");
    used_ &= used_ - 1;
    Bucket bucket;
    bucket.swap(buckets_[number]);
    std::uint64_t least = bucket.front().time;
    for (const Event& event : bucket) least = event.time < least ? event.time : least;
    now_ = least;
    for (const Event& event : bucket) bucket_of(event.time).push_back(event);
    bucket.clear();
    if (buckets_[number].empty()) bucket.swap(buckets_[number]);  // keeps its memory
  }

  std::array<Bucket, 65> buckets_;
  std::uint64_t used_ = 0;  // bit i: bucket i + 1 is not empty
  std::uint64_t now_ = 0;
  std::size_t next_ = 0, size_ = 0;
};

}  // namespace unisono::sim
