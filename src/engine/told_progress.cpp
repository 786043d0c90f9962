// SPDX-License-Identifier: BSD-3-Clause
#include "engine/told_progress.hpp"

#include <algorithm>

namespace unisono::engine {
namespace {

// The numbers may wrap.
bool has_reached(std::uint64_t done, std::uint64_t sequence) {
  return done - sequence < std::uint64_t{1} << 63;
}

}  // namespace

// If all ranks informed all others at the same operation, it would take many times as long as the
// rest. So hosts take turns, and each rank begins with another one.
ToldProgress::ToldProgress(const std::vector<std::vector<int>>& hosts, int ranks, int rank,
                           int slot_indexes, std::uint64_t done)
    : members_(static_cast<std::size_t>(ranks)),
      slots_(static_cast<std::uint64_t>(slot_indexes)),
      next_far_due_(done + 1) {
  ranks_.reserve(members_.size());  // the data path does not allocate
  const std::uint64_t half = slots_ / 2, far_half = kFarTurns * half;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const std::size_t turn = (h + static_cast<std::size_t>(rank)) % hosts.size();
    for (const int there : hosts[h]) {
      member(there) = {.is_remote = true,
                       .told = done,
                       .due = done + half - turn * half / hosts.size(),
                       .far_due = done + far_half - turn * far_half / hosts.size()};
    }
  }
}

std::span<const std::int32_t> ToldProgress::take_due(std::uint64_t done,
                                                     std::span<const std::int32_t> senders) {
  ranks_.clear();
  for (const std::int32_t rank : senders) {
    if (has_reached(done, member(rank).due)) ranks_.push_back(rank);
  }
  if (!has_reached(done, next_far_due_)) return ranks_;
  const std::size_t of_senders = ranks_.size();
  next_far_due_ = done + kFarTurns * slots_ / 2;
  for (std::int32_t rank = 0; rank < std::ssize(members_); ++rank) {
    const Member& each = member(rank);
    if (!each.is_remote) continue;
    if (!has_reached(done, each.far_due)) {
      if (each.far_due - done < next_far_due_ - done) next_far_due_ = each.far_due;
    } else if (std::ranges::count(std::span(ranks_).first(of_senders), rank) == 0) {
      ranks_.push_back(rank);
    }
  }
  return ranks_;
}

std::span<const std::int32_t> ToldProgress::take_needed(std::uint64_t done, std::uint64_t sequence,
                                                        std::span<const std::int32_t> senders) {
  ranks_.clear();
  for (const std::int32_t rank : senders) {
    const std::uint64_t told = member(rank).told;
    if (sequence - told > slots_ && told != done) ranks_.push_back(rank);
  }
  return ranks_;
}

std::span<const std::int32_t> ToldProgress::take_untold(std::uint64_t done) {
  ranks_.clear();
  for (std::int32_t rank = 0; rank < std::ssize(members_); ++rank) {
    if (member(rank).is_remote && member(rank).told != done) ranks_.push_back(rank);
  }
  return ranks_;
}

void ToldProgress::note_told(int rank, std::uint64_t done) {
  Member& each = member(rank);
  each.told = done;
  each.due = done + slots_ / 2;
  each.far_due = done + kFarTurns * slots_ / 2;
}

bool ToldProgress::know_enough(std::uint64_t sequence,
                               std::span<const std::int32_t> senders) const {
  return std::ranges::all_of(senders, [&](std::int32_t rank) {
    return sequence - members_[static_cast<std::size_t>(rank)].told <= slots_;
  });
}

}  // namespace unisono::engine
