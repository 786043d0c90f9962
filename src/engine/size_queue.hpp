// SPDX-License-Identifier: BSD-3-Clause
// SizeQueue: the part of a communicator's shared memory through which operations of one size class
// run. It has some slot indexes; operation n uses slot index n mod slot_indexes. For each, every
// rank has a receive buffer: `lines` cache lines, each with 56 bytes of payload and one flag word,
// then a data area for payloads that are longer. Flag words never hold anything but flags.
//
// Reuse: the buffers of operation n held messages of operation n - slot_indexes. They are free when
// all that read or write there have completed that one. If only their owners read them, these are
// the receivers of a message: each has got all that was written there. So a rank waits for those to
// which it writes in n, and may be ahead of others. Where ranks read each other's buffers, it waits
// for all members of this host, and for all of each other host to which it writes. Each rank
// publishes how far it has come in a line of its own (Progress). A cached minimum is mostly all
// that the data path looks at. This rule makes every slot's reuse safe, whatever the schedules are
// (docs/decisions/0002, 0068, 0092). No member is further behind than kFarTurns times the slot
// indexes.
//
// The structs are shared between processes: fixed layout, lock-free atomics. The SizeQueue object
// is a process's view; one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/task.hpp"
#include "engine/told_progress.hpp"
#include "plan/plan.hpp"

namespace unisono::engine {

inline constexpr int kMostSlotIndexes = 64;  // completions are kept in one 64-bit mask

// A flag word: 40 bits of sequence number, 24 bits of the call's digest. A wait looks for equality,
// so the sequence may wrap.
inline constexpr std::uint64_t make_tag(std::uint64_t sequence, std::uint32_t digest) {
  return (sequence << plan::kDigestBits) | (digest & plan::kDigestMask);
}
// Whether a flag word belongs to operation `tag`, be its call the same or not. A word that was
// never written is zero; a digest never is.
inline constexpr bool same_operation(std::uint64_t flag, std::uint64_t tag) {
  return flag != 0 && (flag >> plan::kDigestBits) == (tag >> plan::kDigestBits);
}

// A rank's call, for the others' error messages. Its rank writes it at each operation's start.
// Readers take it as consistent if `sequence` is the same before and after.
struct alignas(plan::kLineBytes) CallRecord {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> index{0};  // of the operation in its communicator
  std::atomic<std::int64_t> count{0};
  std::atomic<std::uint32_t> digest{0};
  std::atomic<std::int32_t> root{0};
  std::atomic<std::int32_t> type{0};
  std::atomic<std::int32_t> op{0};
  std::atomic<std::int32_t> collective{0};
};

// A rank's progress: all operations up to `done` are complete. Written by its rank only. A rank of
// another host updates it by puts, which only increase it and may overtake each other
// (docs/decisions/0013). It tells the ranks that write to its host after each half of the slot
// indexes, or when they need it. It tells all others after each half of kFarTurns times as many.
struct alignas(plan::kLineBytes) Progress {
  std::atomic<std::uint64_t> done{0};  // 0: nothing yet
};

// Bytes of a size class's control structs (records, tasks, progress), before its receive buffers.
std::int64_t size_queue_control_bytes(const plan::ReceiveGeometry& geometry);

// The offset of an operation's data in its receive buffers, beside what its steps say.
inline std::int64_t data_offset(const plan::Rotation& rotation, std::uint64_t sequence) {
  return static_cast<std::int64_t>(sequence >> rotation.slot_indexes_log2 & rotation.mask) *
         rotation.bytes;
}

class SizeQueue {
 public:
  // `control` and `receive_buffers` lie in shared memory, aligned to a line. `control` is zeroed;
  // `receive_buffers` are zeroed or have flags of lower sequence numbers in the same places. All
  // ranks use the same `first_sequence`.
  SizeQueue(const plan::ReceiveGeometry& geometry, int rank, std::byte* control,
            std::byte* receive_buffers, std::uint64_t first_sequence);

  const plan::ReceiveGeometry& geometry() const { return geometry_; }
  int rank() const { return rank_; }

  // The members on other hosts, host by host. Called before the first operation.
  void set_remote(const std::vector<std::vector<int>>& hosts);
  // They know this rank's progress by this word, which is at the same place on every host.
  ToldProgress& told() { return told_; }
  std::uint64_t done() const { return done_; }
  std::uint64_t* done_word() const {
    return reinterpret_cast<std::uint64_t*>(&progress_[rank_].done);
  }
  // A member of another host that keeps operation `sequence` from being entered; -1: none.
  // `receivers`: Program::remote_receivers.
  int laggard(std::uint64_t sequence, std::span<const std::int32_t> receivers) const;

  // The sequence number of the next operation; the same on all ranks that have made the same calls.
  std::uint64_t next_sequence() const { return next_; }
  // The next sequence numbers, for an operation of `segments` parts.
  std::uint64_t take(std::int64_t segments) {
    const std::uint64_t first = next_;
    next_ += static_cast<std::uint64_t>(segments);
    return first;
  }
  // Whether operation `sequence` may be entered now (see above). `ahead`: the caller's own limit
  // beside that of the slot indexes (Plan::ahead). `program`: this rank's.
  bool may_enter(std::uint64_t sequence, std::int64_t ahead, const plan::Program& program) {
    const std::uint64_t most = std::min(slots(), static_cast<std::uint64_t>(ahead));
    if (sequence - slowest_ <= most && is_remote_.empty()) [[likely]]
      return true;
    return have_room(sequence, ahead, program);
  }
  // It is entered.
  void note_entry(std::uint64_t sequence, const plan::Program& program) {
    const int bit = static_cast<int>(slot_index(sequence));
    const std::uint64_t others_read = program.only_owners_read ? 0 : 1;
    others_read_ = (others_read_ & ~(std::uint64_t{1} << bit)) | others_read << bit;
  }
  // Whether all members of this host have completed operation `sequence`, which this rank has
  // completed, by a look of before.
  bool was_completed_by_all_here(std::uint64_t sequence) const {
    return slowest_ - sequence < std::uint64_t{1} << 63;
  }
  // Looks at all members.
  void refresh_slowest();
  // This rank's part of operation `sequence` is over.
  void complete(std::uint64_t sequence) {
    if (sequence == done_ + 1 && completed_ahead_ == 0) [[likely]] {
      progress_[rank_].done.store(++done_, std::memory_order_release);
    } else {
      complete_out_of_order(sequence);
    }
  }
  bool completed_by(int rank, std::uint64_t sequence) const;

  std::byte* buffers_of(std::uint64_t sequence) const {
    return receive_buffers_ + slot_index(sequence) * receive_buffer_bytes_;
  }
  // An operation begins. Whether this rank has waited for none of the last ones, and so is probably
  // ahead of its receivers. False also if it may not get as far ahead as the later operation.
  // `ahead`: Plan::ahead.
  bool runs_ahead(std::int64_t ahead) {
    return ++without_wait_ > kAheadAfter && ahead > later_operations();
  }
  void note_wait() { without_wait_ = 0; }
  // The receive buffers of an operation that this rank begins soon, if it runs ahead.
  std::byte* later_buffers_of(std::uint64_t sequence) const {
    return buffers_of(sequence + static_cast<std::uint64_t>(later_operations()));
  }
  // Whether the next `segments` operations find their receive buffers in real memory.
  bool is_real(std::int64_t segments) const {
    return next_ + static_cast<std::uint64_t>(segments) <= real_end_;
  }
  // From this sequence number on they do not. The owner of the memory says so.
  void set_real_end(std::uint64_t sequence) { real_end_ = sequence; }
  CallRecord& record(std::uint64_t sequence, int rank) const {
    return records_[rank * geometry_.slot_indexes + slot_index(sequence)];
  }
  Task& task(std::uint64_t sequence, int rank) const {
    return tasks_[rank * geometry_.slot_indexes + slot_index(sequence)];
  }

 private:
  // Operations without a wait. Between calls with barriers a rank seldom has so many.
  static constexpr std::uint64_t kAheadAfter = 16;

  std::int64_t later_operations() const { return geometry_.slot_indexes / 8; }
  std::int64_t slot_index(std::uint64_t sequence) const {
    return static_cast<std::int64_t>(sequence &
                                     (static_cast<std::uint64_t>(geometry_.slot_indexes) - 1));
  }
  bool have_room(std::uint64_t sequence, std::int64_t ahead, const plan::Program& program);
  std::uint64_t slots() const { return static_cast<std::uint64_t>(geometry_.slot_indexes); }
  void complete_out_of_order(std::uint64_t sequence);
  std::uint64_t done_by(int rank) const;

  plan::ReceiveGeometry geometry_;
  int rank_;
  std::int64_t receive_buffer_bytes_;
  std::byte* receive_buffers_;
  CallRecord* records_;
  Task* tasks_;
  Progress* progress_;
  std::uint64_t first_;          // sequence number
  std::vector<bool> is_remote_;  // by rank; empty: all members are on this host
  ToldProgress told_;
  std::uint64_t next_;
  std::uint64_t real_end_ = 0;
  std::uint64_t done_;               // the value of progress_[rank_]
  std::uint64_t slowest_;            // a lower bound of done of this host's members
  std::uint64_t slowest_remote_;     // and of the others
  std::vector<std::uint64_t> seen_;  // done of each member, at the last look
  // By slot index: whether ranks read each other's buffers in the last operation that used it.
  std::uint64_t others_read_ = 0;
  std::uint64_t without_wait_ = 0;     // operations
  std::uint64_t completed_ahead_ = 0;  // bit i: operation done_ + 1 + i is complete
};

// A communicator's queues, by size class.
using SizeQueues = std::array<SizeQueue, plan::kSizeClasses.size()>;
inline SizeQueue& size_queue_of(SizeQueues& size_queues, plan::SizeClass size) {
  return size_queues[static_cast<std::size_t>(size)];
}

}  // namespace unisono::engine
