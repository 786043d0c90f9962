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
      slowest_(first_sequence - 1) {
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

// If all ranks informed all others at the same operation, it would take many times as long as the
// rest. So hosts take turns, and each rank begins with another one.
void SizeQueue::set_remote(std::vector<std::vector<int>> hosts) {
  remote_hosts_.clear();
  const auto half = static_cast<std::uint64_t>(geometry_.slot_indexes) / 2;
  for (std::vector<int>& ranks : hosts) {
    const std::size_t turn =
        (remote_hosts_.size() + static_cast<std::size_t>(rank_)) % hosts.size();
    const std::uint64_t due = done_ + half - turn * half / hosts.size();
    remote_hosts_.push_back({.ranks = std::move(ranks), .sent = done_, .due = due});
  }
  first_due_ = done_ + 1;
}

std::optional<SizeQueue::Update> SizeQueue::take_update(bool at_once) {
  if (!at_once && !is_reached(first_due_)) [[likely]]
    return std::nullopt;
  const auto half = static_cast<std::uint64_t>(geometry_.slot_indexes) / 2;
  first_due_ = done_ + half;
  for (RemoteHost& host : remote_hosts_) {
    if (at_once ? host.sent != done_ : is_reached(host.due)) {
      host.sent = done_;
      host.due = done_ + half;
      first_due_ = done_;  // there may be more
      return Update{host.ranks, reinterpret_cast<std::uint64_t*>(&progress_[rank_].done), done_};
    }
    if (host.due - done_ < first_due_ - done_) first_due_ = host.due;
  }
  return std::nullopt;
}

int SizeQueue::laggard(std::uint64_t sequence) const {
  const auto slot_indexes = static_cast<std::uint64_t>(geometry_.slot_indexes);
  for (const RemoteHost& host : remote_hosts_) {
    for (const int rank : host.ranks) {
      if (!completed_by(rank, sequence - slot_indexes)) return rank;
    }
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
  std::uint64_t slowest = done_;
  for (int r = 0; r < geometry_.ranks; ++r) {
    const std::uint64_t done = done_by(r);
    if (done_ - done < std::uint64_t{1} << 63) slowest = std::min(slowest, done);
  }
  slowest_ = slowest;
}

}  // namespace unisono::engine
