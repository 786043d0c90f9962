// SPDX-License-Identifier: BSD-3-Clause
// References: the messages of a schedule set that may stay in the caller's buffer of their sender.
// If that buffer lies in the job's memory, the sender decides so for each operation, and its
// receiver reads the buffer instead of its slot (decision 56). The buffer keeps its values until
// the receiver has read them: the schedules order its next write behind that, or the receiver
// releases it at the end of the operation. Control path; pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::plan {

// no: the message is always copied. ordered: the sender writes the source again, and only after its
// receiver has read it. released: the receiver has to tell.
enum class Reference : std::uint8_t { no, ordered, released };

// Those that `rank` sends and receives.
class References {
 public:
  // None.
  References() = default;
  // For messages of `from_count` elements or more, of a set of at most kMostRanks.
  References(std::span<const schedule::Schedule> set, int rank, std::int64_t from_count);
  static constexpr int kMostRanks = 32;

  bool any() const { return any_; }
  Reference sent(schedule::OpId op) const {
    return any_ ? sent_[static_cast<std::size_t>(op)] : Reference::no;
  }
  Reference received(schedule::SlotId slot) const {
    return any_ ? received_[static_cast<std::size_t>(slot)] : Reference::no;
  }

 private:
  std::vector<Reference> sent_;      // by op
  std::vector<Reference> received_;  // by slot
  bool any_ = false;
};

}  // namespace unisono::plan
