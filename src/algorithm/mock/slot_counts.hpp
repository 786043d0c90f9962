// SPDX-License-Identifier: BSD-3-Clause
// SlotCounts: how many slots the ranks have in the part of a mock-up with the first slots, each
// found once. A sender needs to know it of its peers, and a choice by price builds the schedules of
// all ranks, one after the other. It keeps those of one candidate. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/in_use.hpp"

namespace unisono::algorithm::mock {

class SlotCounts {
 public:
  SlotCounts() = default;
  SlotCounts(const SlotCounts&) = delete;
  SlotCounts& operator=(const SlotCounts&) = delete;

  // While it lives, mock-ups of this thread keep the numbers. They are parts of calls that have the
  // same order of ranks.
  using Use = InUse<SlotCounts>;

  // Those of the part by rank, -1 where they are not known; or `own` where none are kept.
  static std::vector<schedule::SlotId>& of(const Algorithm& row, const Parameters& parameters,
                                           const Shape& shape, std::vector<schedule::SlotId>& own) {
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    SlotCounts* const kept = Use::current();
    if (kept == nullptr) {
      if (own.empty()) own.assign(ranks, -1);
      return own;
    }
    const Part part{.row = &row,
                    .parameters = parameters,
                    .count = shape.count,
                    .of_blocks = shape.blocks.given() ? shape.blocks.total() : -1,
                    .ranks = shape.ranks,
                    .root = shape.root};
    if (kept->part_ != part) {
      kept->part_ = part;
      kept->counts_.assign(ranks, -1);
    }
    return kept->counts_;
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

  Part part_;
  std::vector<schedule::SlotId> counts_;
};

}  // namespace unisono::algorithm::mock
