// SPDX-License-Identifier: BSD-3-Clause
// A binomial tree for each rank's block, all of them the same but shifted (Jeaugey 2025): a block
// hops the largest power of two first, from each rank that has it. So the ranks that have it before
// a hop are at distances that are multiples of twice the hop. Pure; any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace unisono::algorithm::pattern {

// The largest power of two below `ranks`; 0 for one rank.
inline int longest_hop(int ranks) {
  return ranks == 1 ? 0 : static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
}

// The distances of the blocks of a message: so many, each `step` more than the one before.
class Distances {
 public:
  class Iterator {
   public:
    Iterator(std::int64_t distance, std::int64_t step) : distance_(distance), step_(step) {}
    int operator*() const { return static_cast<int>(distance_); }
    Iterator& operator++() {
      distance_ += step_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    std::int64_t distance_, step_;
  };

  Distances(std::int64_t first, std::int64_t step, int count)
      : first_(first), step_(step), count_(count) {}
  int front() const { return static_cast<int>(first_); }
  int size() const { return count_; }
  Iterator begin() const { return {first_, step_}; }
  Iterator end() const { return {first_ + count_ * step_, step_}; }

 private:
  std::int64_t first_, step_;
  int count_;
};

// The messages by which a rank sends blocks on by this hop, of at most `blocks` each. The distances
// that these have come rise. They are the same for all ranks.
class MessagesOfHop {
 public:
  MessagesOfHop(int ranks, int hop, int blocks)
      : step_(2 * std::int64_t{hop}),
        blocks_(blocks),
        distances_(static_cast<int>((ranks - hop + step_ - 1) / step_)) {}

  int size() const { return distances_ / blocks_ + (distances_ % blocks_ == 0 ? 0 : 1); }
  Distances operator[](int message) const {
    const int first = message * blocks_;
    return {first * step_, step_, std::min(blocks_, distances_ - first)};
  }

 private:
  std::int64_t step_;
  int blocks_;
  int distances_;  // of all messages
};

}  // namespace unisono::algorithm::pattern
