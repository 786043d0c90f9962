// SPDX-License-Identifier: BSD-3-Clause
// SlotCounts: how many slots the ranks have in the part of a mock-up with the first slots, each
// found once. A sender needs to know it of its peers, and a choice by price builds the schedules of
// all ranks, one after the other. It keeps those of one candidate. One thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"

namespace unisono::algorithm::mock {

class SlotCounts {
 public:
  SlotCounts() = default;
  SlotCounts(const SlotCounts&) = delete;
  SlotCounts& operator=(const SlotCounts&) = delete;

  // While it lives, mock-ups of this thread keep the numbers in `counts`, which outlives it. They
  // are parts of calls that have the same order of ranks.
  class Use {
   public:
    explicit Use(SlotCounts& counts) : before_(std::exchange(used_, &counts)) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { used_ = before_; }

   private:
    SlotCounts* before_;
  };

  // Those of the part by rank, -1 where they are not known; or `own` where none are kept.
  static std::vector<schedule::SlotId>& of(const Algorithm& row, const Parameters& parameters,
                                           const Shape& shape, std::vector<schedule::SlotId>& own) {
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    if (used_ == nullptr) {
      if (own.empty()) own.assign(ranks, -1);
      return own;
    }
    const Part part{.row = &row,
                    .parameters = parameters,
                    .count = shape.count,
                    .of_blocks = shape.blocks.given() ? shape.blocks.total() : -1,
                    .ranks = shape.ranks,
                    .root = shape.root};
    if (used_->part_ != part) {
      used_->part_ = part;
      used_->counts_.assign(ranks, -1);
    }
    return used_->counts_;
  }

 private:
  // Blocks are equal shares of so many elements, or nearly so.
  struct Part {
    const Algorithm* row = nullptr;
    Parameters parameters;
    std::int64_t count = 0, of_blocks = -1;
    int ranks = 0, root = 0;

    bool operator==(const Part&) const = default;
  };

  inline static thread_local SlotCounts* used_ = nullptr;

  Part part_;
  std::vector<schedule::SlotId> counts_;
};

}  // namespace unisono::algorithm::mock
