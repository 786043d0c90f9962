// SPDX-License-Identifier: BSD-3-Clause
#include "engine/size_queue.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.hpp"

namespace unisono::engine {
namespace {

std::int64_t rank_slot_indexes(const plan::ReceiveGeometry& geometry) {
  return static_cast<std::int64_t>(geometry.ranks) * geometry.slot_indexes;
}

}  // namespace

std::int64_t size_queue_control_bytes(const plan::ReceiveGeometry& geometry) {
  return rank_slot_indexes(geometry) *
             static_cast<std::int64_t>(sizeof(CallRecord) + sizeof(Task)) +
         geometry.ranks * static_cast<std::int64_t>(sizeof(Progress));
}

SizeQueue::SizeQueue(const plan::ReceiveGeometry& geometry, int rank, std::byte* control,
                     std::byte* receive_buffers, std::uint64_t first_sequence)
    : geometry_(geometry),
      rank_(rank),
      receive_buffer_bytes_(geometry.receive_buffer_bytes()),
      receive_buffers_(receive_buffers),
      first_(first_sequence),
      next_(first_sequence),
      done_(first_sequence - 1),
      slowest_(first_sequence - 1),
      slowest_remote_(first_sequence - 1),
      seen_(static_cast<std::size_t>(geometry.ranks), first_sequence - 1) {
  UNISONO_CHECK(geometry.slot_indexes >= 2 && geometry.slot_indexes <= kMostSlotIndexes &&
                    std::has_single_bit(static_cast<unsigned>(geometry.slot_indexes)),
                "slot indexes of a size class queue");
  records_ = reinterpret_cast<CallRecord*>(control);
  control += rank_slot_indexes(geometry) * static_cast<std::int64_t>(sizeof(CallRecord));
  tasks_ = reinterpret_cast<Task*>(control);
  control += rank_slot_indexes(geometry) * static_cast<std::int64_t>(sizeof(Task));
  progress_ = reinterpret_cast<Progress*>(control);
  progress_[rank].done.store(done_, std::memory_order_release);
}

void SizeQueue::set_remote(const std::vector<std::vector<int>>& hosts) {
  is_remote_.assign(static_cast<std::size_t>(geometry_.ranks), false);
  for (const std::vector<int>& there : hosts) {
    for (const int rank : there) is_remote_[static_cast<std::size_t>(rank)] = true;
  }
  told_ = ToldProgress(hosts, geometry_.ranks, rank_, geometry_.slot_indexes, done_);
}

// A look is at all members. So it is as good for the next operations, whoever receives there. The
// limit for all members bounds what others have to remember of a rank's calls
// (comm/operations/remote_calls.hpp).
bool SizeQueue::have_room(std::uint64_t sequence, std::int64_t ahead,
                          const plan::Program& program) {
  const std::uint64_t far = kFarTurns * slots();
  const auto all_are_within = [&](std::uint64_t operations) {
    return sequence - slowest_ <= std::min(operations, static_cast<std::uint64_t>(ahead));
  };
  const bool others_have_read = (others_read_ >> slot_index(sequence) & 1) != 0;
  const auto receivers_have_room = [&] {
    return program.only_owners_read && !others_have_read && all_are_within(far) &&
           sequence - done_ <= slots() &&
           std::ranges::all_of(program.receivers_here, [&](std::int32_t rank) {
             return sequence - seen_[static_cast<std::size_t>(rank)] <= slots();
           });
  };
  if (!all_are_within(slots()) && !receivers_have_room()) {
    refresh_slowest();
    if (!all_are_within(slots()) && !receivers_have_room()) return false;
  }
  if (is_remote_.empty()) return true;
  if (sequence - slowest_remote_ > far) {
    refresh_slowest();
    if (sequence - slowest_remote_ > far) return false;
  }
  return std::ranges::all_of(program.remote_receivers, [&](std::int32_t rank) {
    return completed_by(rank, sequence - slots());
  });
}

int SizeQueue::laggard(std::uint64_t sequence, std::span<const std::int32_t> receivers) const {
  for (const std::int32_t rank : receivers) {
    if (!completed_by(rank, sequence - slots())) return rank;
  }
  for (std::size_t r = 0; r < is_remote_.size(); ++r) {
    const int rank = static_cast<int>(r);
    if (is_remote_[r] && !completed_by(rank, sequence - kFarTurns * slots())) return rank;
  }
  return -1;
}

void SizeQueue::complete_out_of_order(std::uint64_t sequence) {
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

bool SizeQueue::completed_by(int rank, std::uint64_t sequence) const {
  return done_by(rank) - sequence < std::uint64_t{1} << 63;
}

std::uint64_t SizeQueue::done_by(int rank) const {
  const std::uint64_t done = progress_[rank].done.load(std::memory_order_acquire);
  // 0: the rank has not called yet. Memory between hosts existed before this object was made; only
  // later values count.
  const std::uint64_t before = first_ - 1;
  return done != 0 && done - before < std::uint64_t{1} << 63 ? done : before;
}

void SizeQueue::refresh_slowest() {
  slowest_ = slowest_remote_ = done_;
  for (int r = 0; r < geometry_.ranks; ++r) {
    const std::uint64_t done = done_by(r);
    const bool is_remote = !is_remote_.empty() && is_remote_[static_cast<std::size_t>(r)];
    std::uint64_t& slowest = is_remote ? slowest_remote_ : slowest_;
    seen_[static_cast<std::size_t>(r)] = done;
    if (slowest - done < std::uint64_t{1} << 63) slowest = done;
  }
}

}  // namespace unisono::engine
