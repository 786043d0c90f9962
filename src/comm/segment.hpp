// SPDX-License-Identifier: BSD-3-Clause
// Segment: a communicator's shared memory. It lies at the same offset of every host's memory file.
// Its leader reserves it and decides how it is divided; the other members take the layout from
// there, so that settings which differ between ranks cannot pull them apart. The control data is
// real memory from the start. Receive buffers become real when an operation needs them, before its
// rank sends anything. On one host, those of a slot index do when a sequence number reaches it.
// One thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "comm/failure/failure_updates.hpp"
#include "comm/member_record.hpp"
#include "comm/members.hpp"
#include "engine/size_queue.hpp"
#include "job/failure_record.hpp"
#include "plan/choice_table.hpp"
#include "plan/plan.hpp"
#include "topology/host_map.hpp"

namespace unisono::comm {

// Offsets from the segment's start.
struct SegmentLayout {
  plan::Geometries receive_buffers;
  std::int64_t notices, leave_records, ends, members, calls;
  plan::BySize<std::int64_t> queue_control;
  plan::BySize<std::int64_t> queue_buffers;  // from here on memory only where it is needed
  std::int64_t agreement, answers, failure_answers, host_reduction, bytes;
  std::int64_t choices;  // a ChoiceTable
  std::uint64_t first_sequence;
  bool streams;  // as in plan_segment
};

// At the segment's start.
struct SegmentHeader {
  SegmentLayout layout;
  job::FailureRecord failure;
  alignas(64) std::atomic<std::uint32_t> credit_sleepers;  // ranks that sleep until one completes
  std::atomic<std::uint32_t> freed;       // members of this host that have ended it, or died
  std::atomic<std::uint64_t> derivation;  // the last one's number and outcome (derive.cpp)
  // For the last member to end it: one has failed or could not end it itself; and the greatest next
  // sequence number.
  std::atomic<bool> is_not_reusable;
  // On one host: so many slot indexes of each size class have real memory, in the order in which
  // sequence numbers reach them.
  plan::BySize<std::atomic<std::int32_t>> real_slots;
  std::atomic<std::uint64_t> next_sequence;
  std::atomic<std::int64_t> first_stranded;  // of this host's members (StrandedBlocks)
};

// The leader's message to the members of a new communicator.
struct Grant {
  std::int64_t offset = -1;  // -1: there was no memory
  SegmentLayout layout{};
};

// How messages go to other hosts: none do; all are datagrams; or long ones go by streams or remote
// memory, in long pieces.
enum class Links : std::uint8_t { none, datagrams, streams };

// How close a communicator's members are, for the receive buffers of streams.
struct Spread {
  int on_a_host = 0;      // the most members whose buffers one host holds; 0: all
  std::int64_t room = 0;  // of the job's memory, in bytes of address space; 0: only the usual
};
// The members are on these hosts. `multicasts`: they can use multicast, and up to `few` hosts send
// long messages without. `left`: what the leader's host has left of the job's memory.
Spread spread_over(const topology::HostMap& hosts, bool multicasts, int few, std::int64_t left);

// Pure.
SegmentLayout plan_segment(int ranks, const base::Settings& settings, Links links = Links::none,
                           const Spread& spread = {});
// A number that tells whether two ranks divide their memory alike (JobDescription::memory_layout).
std::uint64_t memory_layout(const base::Settings& settings);

class Segment {
 public:
  // Reserves one for these members, with its control data. By its leader. It is noted in
  // `reservation` with that number, if there is one, before its control data is made.
  static base::Result<Grant> reserve(job::Job& job, std::span<const int> job_ranks,
                                     Reservation* reservation = nullptr, std::uint64_t number = 0);
  // Makes the control data real, and zero, where a rank of another host has reserved the segment.
  // By each member of this host, before any of them uses it.
  static base::Status adopt(job::Job& job, const Grant& grant);
  // The layout that its leader has written; on the leader's host.
  static SegmentLayout layout_at(job::Job& job, std::int64_t offset);

  // `members` outlives it.
  Segment(const Members& members, const Grant& grant);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::int64_t offset() const { return offset_; }
  const SegmentLayout& layout() const { return layout_; }
  std::byte* at(std::int64_t part) const;
  SegmentHeader& header() const { return *header_; }
  MemberRecord* records() const { return reinterpret_cast<MemberRecord*>(at(layout_.members)); }
  plan::ChoiceEntry* choices() const {
    return reinterpret_cast<plan::ChoiceEntry*>(at(layout_.choices));
  }
  FailurePlace failure_place() const;
  // Differs from that of older communicators at the same place.
  std::uint64_t mark() const { return layout_.first_sequence; }

  engine::SizeQueues& size_queues() { return size_queues_; }
  const engine::SizeQueues& size_queues() const { return size_queues_; }
  // Allocates the receive buffers that a plan's next operation uses: a sender writes into others'
  // buffers, perhaps before they have called. If that was done, it costs one check.
  base::Status prepare(const plan::Plan& plan) {
    const Prepared& is_real = prepared_[plan.size];
    if (plan.receive_buffer_bytes <= is_real.own && plan.multicast_bytes <= is_real.group &&
        size_queues_[static_cast<std::size_t>(plan.size)].is_real(plan.segments)) [[likely]]
      return base::success();
    return prepare_now(plan);
  }
  std::int64_t buffer_bytes() const { return buffer_bytes_; }

  // Counts this rank, and members that cannot end the communicator themselves: the dead, and
  // `absent` ones, which never had its memory. True for the last one of this host.
  bool count_end(const std::vector<int>& absent, bool has_failed);
  // Gives the memory back, on one host. After a failure, members may have written more than
  // others know; else a newer communicator may take it over.
  void release();
  // The same between hosts, for a member: informs the leader that it has ended the communicator;
  // the leader itself keeps the segment until all have.
  void leave(bool last_here, bool has_failed, bool tells);

 private:
  // The bytes of a size class's buffers that are real memory, lines apart; -1: none are. Those of
  // members of this host, and of other hosts' members that send multicasts.
  struct Prepared {
    std::int64_t own = -1, group = -1;
    int slots = 0;  // on one host
  };
  static constexpr std::uint64_t kAllSequences = std::numeric_limits<std::uint64_t>::max();

  engine::SizeQueue make_size_queue(plan::SizeClass size) const;
  base::Status prepare_now(const plan::Plan& plan);
  base::Status prepare_slots(const plan::Plan& plan);
  base::Status make_slots_real(plan::SizeClass size, int before, int now);
  base::Status prepare_for_hosts(const plan::Plan& plan);
  base::Status make_real(plan::SizeClass size, int rank, std::int64_t from, std::int64_t to,
                         std::int64_t& made);
  std::uint64_t next_sequence() const;  // the greatest of all queues

  const Members& members_;
  std::int64_t offset_;
  SegmentLayout layout_;
  SegmentHeader* header_;
  engine::SizeQueues size_queues_;
  plan::BySize<Prepared> prepared_;
  std::int64_t buffer_bytes_ = 0;
};

}  // namespace unisono::comm
