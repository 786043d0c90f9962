// SPDX-License-Identifier: BSD-3-Clause
#include "job/retired_segments.hpp"

namespace unisono::job {

void RetiredSegments::raise_least_sequence(std::uint64_t next_sequence) {
  std::uint64_t least = header_.least_sequence.load(std::memory_order_relaxed);
  while (least < next_sequence &&
         !header_.least_sequence.compare_exchange_weak(least, next_sequence)) {
  }
}

void RetiredSegments::add(const Retired& segment, std::uint64_t next_sequence) {
  raise_least_sequence(next_sequence);
  const std::lock_guard lock(mutex_);
  retired_.push_back(segment);
}

bool RetiredSegments::reclaim() {
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [this](const Retired& segment) { return reclaim_one(segment); });
  return retired_.empty();
}

// False if a member may still use it.
bool RetiredSegments::reclaim_one(const Retired& segment) {
  bool clean = true;
  for (std::size_t m = 0; m < segment.members.size(); ++m) {
    const auto said =
        static_cast<LeaveRecord>(segment.leave_records[m].load(std::memory_order_acquire));
    if (said == LeaveRecord::none && !ranks_.is_lost(segment.members[m])) return false;
    clean &= said == LeaveRecord::clean;
  }
  if (clean) {
    memory_.release(segment.offset, segment.bytes);
  } else {
    memory_.empty(segment.offset, segment.bytes);
  }
  return true;
}

}  // namespace unisono::job
