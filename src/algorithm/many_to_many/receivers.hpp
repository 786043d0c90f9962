// SPDX-License-Identifier: BSD-3-Clause
// The receivers of a many-to-many in the order of ranks, and around the circle of ranks: from any
// rank, the receivers above it follow one another, after the last rank those from rank 0 on. Only
// the algorithms of this folder use it; a value, any thread.
#pragma once

#include <algorithm>
#include <vector>

#include "schedule/shape.hpp"

namespace unisono::algorithm::many_to_many {

class Receivers {
 public:
  explicit Receivers(const schedule::Shape& shape) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      if (schedule::receives(shape, rank)) ranks_.push_back(rank);
    }
  }

  int count() const { return static_cast<int>(ranks_.size()); }
  bool contains(int rank) const { return std::ranges::binary_search(ranks_, rank); }
  int at(int position) const { return ranks_[static_cast<std::size_t>(position)]; }

  // The position of the first receiver that is not below `rank`; beyond the last one, the first.
  int position(int rank) const {
    const auto found = std::ranges::lower_bound(ranks_, rank);
    return found == ranks_.end() ? 0 : static_cast<int>(found - ranks_.begin());
  }
  // The receivers above `from` are numbered from 0, around the circle; `from` itself, if it is one,
  // is the last. Their number for a receiver, and the receiver of a number.
  int number_after(int from, int receiver) const {
    return around(position(receiver) - position_above(from));
  }
  int after(int from, int number) const { return at(around(position_above(from) + number)); }

 private:
  int position_above(int rank) const { return position(rank + 1); }
  int around(int position) const {
    const int wrapped = position % count();
    return wrapped < 0 ? wrapped + count() : wrapped;
  }

  std::vector<int> ranks_;
};

}  // namespace unisono::algorithm::many_to_many
