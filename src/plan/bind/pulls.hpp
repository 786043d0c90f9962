// SPDX-License-Identifier: BSD-3-Clause
// Pulls: the messages of a schedule set that need not be copied into a receive buffer, because
// their receivers can read the sender's own buffers. The source is the caller's memory and is not
// written again in this operation, and no receiver sends the message on from its slot. Control
// path; pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::plan {

// Whether the source of a send lies in the caller's memory and is not written in this operation any
// more. `shared`: how input and output share a buffer, if they do.
bool stays(const schedule::Schedule& schedule, schedule::OpId send,
           const std::optional<schedule::InPlace>& shared);
// The later ops that write it; the source of the send lies in the caller's memory.
std::vector<schedule::OpId> overwriters(const schedule::Schedule& schedule, schedule::OpId send,
                                        const std::optional<schedule::InPlace>& shared);

class Pulls {
 public:
  // None.
  Pulls() = default;
  // For messages of `from_count` elements or more.
  Pulls(std::span<const schedule::Schedule> set, std::int64_t from_count);

  bool any() const { return any_; }
  bool sent(int rank, schedule::OpId op) const {
    return any_ && sent_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)];
  }
  bool received(int rank, schedule::SlotId slot) const {
    return any_ && received_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)];
  }

 private:
  std::vector<std::vector<bool>> sent_;      // by rank and op
  std::vector<std::vector<bool>> received_;  // by rank and slot
  bool any_ = false;
};

}  // namespace unisono::plan
