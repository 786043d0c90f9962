// SPDX-License-Identifier: BSD-3-Clause
// SlotCounts: how many slots the ranks have in the part of a mock-up with the first slots, each
// found once. A sender needs to know it of its peers, and a choice by price builds the schedules of
// all ranks, one after the other. It keeps those of one candidate, and the part's schedules that
// had to be built for it until their own rank needs them. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/in_use.hpp"
#include "base/index.hpp"
#include "schedule/spares.hpp"

namespace unisono::algorithm::mock {

class SlotCounts {
 public:
  enum class Schedules : bool { dropped, kept };

  explicit SlotCounts(Schedules schedules = Schedules::kept) : kept_(schedules) {}
  SlotCounts(const SlotCounts&) = delete;
  SlotCounts& operator=(const SlotCounts&) = delete;

  // While it lives, mock-ups of this thread keep the numbers. They are parts of calls that have the
  // same order of ranks.
  using Use = InUse<SlotCounts>;

  // From here on, those of this part of these ranks.
  void begin(const Algorithm& row, const Parameters& parameters, const Shape& shape) {
    const Part part{.row = &row,
                    .parameters = parameters,
                    .count = shape.count,
                    .of_blocks = shape.blocks.given() ? shape.blocks.total() : -1,
                    .ranks = shape.ranks,
                    .root = shape.root,
                    .leaves_out_order = schedule::Spares::leave_out_order(),
                    .leaves_out_steps = schedule::Spares::leave_out_steps()};
    if (part_ == part) return;
    part_ = part;
    counts_.assign(base::index(shape.ranks), -1);
    for (std::optional<Schedule>& each : schedules_) {
      if (each) schedule::Spares::give_back(*std::exchange(each, std::nullopt));
    }
    schedules_.clear();
    steps_ = 0;
  }

  // -1 where it is not known.
  schedule::SlotId of(int rank) const { return counts_[base::index(rank)]; }
  // The schedule of a rank that another one asks about.
  void keep(int rank, Schedule&& schedule) {
    counts_[base::index(rank)] = static_cast<schedule::SlotId>(schedule.slots.size());
    steps_ += schedule.ops.size();
    if (kept_ == Schedules::dropped || steps_ > kMostSteps) {
      schedule::Spares::give_back(std::move(schedule));
    } else {
      schedules_.resize(counts_.size());
      schedules_[base::index(rank)] = std::move(schedule);
    }
  }
  // That schedule, if it is kept; or else the one that `build` makes.
  template <class Build>
  Schedule take(int rank, const Build& build) {
    if (!schedules_.empty() && schedules_[base::index(rank)]) {
      return *std::exchange(schedules_[base::index(rank)], std::nullopt);
    }
    Schedule own = build();
    counts_[base::index(rank)] = static_cast<schedule::SlotId>(own.slots.size());
    return own;
  }

 private:
  // Schedules that are kept have so many steps together at most: megabytes, not gigabytes.
  static constexpr std::size_t kMostSteps = std::size_t{1} << 16;

  // Blocks are equal shares of so many elements, or nearly so.
  struct Part {
    const Algorithm* row = nullptr;
    Parameters parameters;
    std::int64_t count = 0, of_blocks = -1;
    int ranks = 0, root = 0;
    bool leaves_out_order = false, leaves_out_steps = false;

    bool operator==(const Part&) const = default;
  };

  Schedules kept_;
  Part part_;
  std::vector<schedule::SlotId> counts_;
  std::vector<std::optional<Schedule>> schedules_;
  std::size_t steps_ = 0;  // of those that were kept
};

}  // namespace unisono::algorithm::mock
