// SPDX-License-Identifier: BSD-3-Clause
#include "engine/lane.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace unisono::engine {
namespace {

std::int64_t per_channel(const LaneGeometry& geometry) {
  return static_cast<std::int64_t>(geometry.ranks) * geometry.channels;
}

}  // namespace

std::int64_t lane_control_bytes(const LaneGeometry& geometry) {
  return per_channel(geometry) * static_cast<std::int64_t>(sizeof(CallRecord) + sizeof(Task)) +
         geometry.ranks * static_cast<std::int64_t>(sizeof(Progress));
}

Lane::Lane(const LaneGeometry& geometry, int rank, std::byte* control, std::byte* windows,
           std::uint64_t first_sequence)
    : geometry_(geometry),
      rank_(rank),
      window_bytes_(geometry.window_bytes()),
      windows_(windows),
      next_(first_sequence),
      done_(first_sequence - 1),
      slowest_(first_sequence - 1) {
  UNISONO_CHECK(geometry.channels >= 2 && geometry.channels <= kMostChannels &&
                    std::has_single_bit(static_cast<unsigned>(geometry.channels)),
                "lane channels");
  records_ = reinterpret_cast<CallRecord*>(control);
  control += per_channel(geometry) * static_cast<std::int64_t>(sizeof(CallRecord));
  tasks_ = reinterpret_cast<Task*>(control);
  control += per_channel(geometry) * static_cast<std::int64_t>(sizeof(Task));
  progress_ = reinterpret_cast<Progress*>(control);
  progress_[rank].done.store(done_, std::memory_order_release);
}

std::uint64_t Lane::take(std::int64_t segments) {
  const std::uint64_t first = next_;
  next_ += static_cast<std::uint64_t>(segments);
  return first;
}

void Lane::complete(std::uint64_t sequence) {
  if (sequence != done_ + 1) {
    completed_ahead_ |= std::uint64_t{1} << (sequence - done_ - 1);
    return;
  }
  do {
    ++done_;
    completed_ahead_ >>= 1;
  } while ((completed_ahead_ & 1) != 0);
  progress_[rank_].done.store(done_, std::memory_order_release);
}

bool Lane::completed_by(int rank, std::uint64_t sequence) const {
  return progress_[rank].done.load(std::memory_order_acquire) - sequence < std::uint64_t{1} << 63;
}

void Lane::refresh_slowest() {
  std::uint64_t slowest = done_;
  for (int r = 0; r < geometry_.ranks; ++r) {
    const std::uint64_t done = progress_[r].done.load(std::memory_order_acquire);
    // A rank that has not come yet shows 0: further behind than anyone.
    if (done_ - done < std::uint64_t{1} << 63) slowest = std::min(slowest, done);
  }
  slowest_ = slowest;
}

}  // namespace unisono::engine
