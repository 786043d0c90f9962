// SPDX-License-Identifier: BSD-3-Clause
// Lane: the part of a communicator's shared memory through which operations of one size class run.
// It has some channels; operation n uses channel n mod channels. In a channel every rank has a
// window: `lines` cache lines, each with 56 bytes of payload and one flag word, then a data area
// for payloads that are longer. Flag words never hold anything but flags.
//
// Reuse: operation n may be entered when every member has completed operation n - channels. Each
// rank publishes how far it has come in a line of its own (Progress), so one cached minimum is
// all that the data path looks at; this one rule makes every slot's reuse safe, whatever the
// schedules are (docs/decisions/0002).
//
// The structs are shared between processes: fixed layout, lock-free atomics. The Lane object is
// a process's view; one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace unisono::engine {

inline constexpr std::int64_t kLineBytes = 64;
inline constexpr std::int64_t kLinePayload = 56;  // and 8 bytes of flag
inline constexpr int kMostChannels = 64;          // completions are kept in one 64-bit mask

// A flag word: 40 bits of sequence number, 24 bits of the call's digest. A wait looks for equality,
// so the sequence may wrap.
inline constexpr int kDigestBits = 24;
inline constexpr std::uint64_t kDigestMask = (1U << kDigestBits) - 1;
inline constexpr std::uint64_t make_tag(std::uint64_t sequence, std::uint32_t digest) {
  return (sequence << kDigestBits) | (digest & kDigestMask);
}
// Whether a flag word belongs to operation `tag`, be its call the same or not. A word that was
// never written is zero; a digest never is.
inline constexpr bool same_operation(std::uint64_t flag, std::uint64_t tag) {
  return flag != 0 && (flag >> kDigestBits) == (tag >> kDigestBits);
}

inline constexpr std::int64_t odd_lines(std::int64_t bytes) {
  return ((bytes + kLineBytes - 1) / kLineBytes | 1) * kLineBytes;
}

struct LaneGeometry {
  int ranks = 1;
  int channels = 2;             // a power of two
  std::int64_t lines = 1;       // per window
  std::int64_t data_bytes = 0;  // per window, a multiple of kLineBytes

  // An odd number of lines: operation after operation, flags would otherwise fall into the same few
  // sets of a cache (measured: an exchange of two ranks takes twice as long at a power of two).
  std::int64_t window_bytes() const { return odd_lines(lines * kLineBytes + data_bytes); }
  // A rank's windows, of all channels, lie together; from one rank's to the next.
  std::int64_t rank_stride() const { return odd_lines(channels * window_bytes()); }
  std::int64_t windows_bytes() const { return rank_stride() * ranks; }
};

// What a rank called, for the others' error messages. Written by its rank at each operation's
// start; readers take it as consistent when `sequence` is the same before and after.
struct alignas(kLineBytes) CallRecord {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> index{0};  // of the operation in its communicator
  std::atomic<std::int64_t> count{0};
  std::atomic<std::uint32_t> digest{0};
  std::atomic<std::int32_t> root{0};
  std::atomic<std::int32_t> type{0};
  std::atomic<std::int32_t> op{0};
  std::atomic<std::int32_t> collective{0};
};

// A rank that has made something ready and cannot get the claim marks it contended: the holder
// looks again before it lets go.
enum class Claim : std::uint32_t { free, held, contended };

// A rank's program that others may run: published by its owner when it cannot go on by itself.
// Whoever holds the claim runs it. Strands, not steps, say how far it has come.
struct alignas(kLineBytes) Task {
  std::atomic<std::uint64_t> tag{0};  // of the operation; 0: not published
  std::atomic<Claim> claim{Claim::free};
  std::atomic<std::int32_t> strand{0};  // all before it are done
  std::atomic<std::uint64_t> ahead{0};  // and these further on (Position::ahead)
};

// How far a rank has come: all operations up to `done` are complete. Written by its rank only. A
// rank of another host says so by puts, half a lane's channels apart, which move this forward only:
// they overtake each other, and go to each rank of the host (docs/decisions/0013).
struct alignas(kLineBytes) Progress {
  std::atomic<std::uint64_t> done{0};  // 0: nothing yet
};

// Bytes of a lane's control structs (records, tasks, progress), before its windows.
std::int64_t lane_control_bytes(const LaneGeometry& geometry);

class Lane {
 public:
  // `control` and `windows` lie in shared memory, zeroed, aligned to a line. All ranks use the same
  // `first_sequence`.
  Lane(const LaneGeometry& geometry, int rank, std::byte* control, std::byte* windows,
       std::uint64_t first_sequence);

  const LaneGeometry& geometry() const { return geometry_; }
  int rank() const { return rank_; }

  // The members on other hosts, host by host. Before the first operation.
  void set_remote(std::vector<std::vector<int>> hosts);
  // What the members on one of these hosts are to be told of this rank, and where. To be called
  // until it is empty: it is too early for the others. `at_once`: it is not, if there is anything
  // new.
  struct News {
    std::span<const int> ranks;
    std::uint64_t* word;
    std::uint64_t done;
  };
  std::optional<News> take_news(bool at_once);
  // A member of another host that keeps operation `sequence` from being entered; -1: none.
  int laggard(std::uint64_t sequence) const;

  // Of the operation that begins next; the same on all ranks that have made the same calls.
  std::uint64_t next_sequence() const { return next_; }
  // The next sequence numbers, for an operation of `segments` parts.
  std::uint64_t take(std::int64_t segments);
  // Whether operation `sequence` may be entered now (see above).
  bool may_enter(std::uint64_t sequence) {
    const auto channels = static_cast<std::uint64_t>(geometry_.channels);
    if (sequence - slowest_ <= channels) [[likely]]
      return true;
    refresh_slowest();
    return sequence - slowest_ <= channels;
  }
  // This rank's part of operation `sequence` is over.
  void complete(std::uint64_t sequence);
  bool completed_by(int rank, std::uint64_t sequence) const;

  std::byte* channel_base(std::uint64_t sequence) const {
    return windows_ + channel(sequence) * window_bytes_;
  }
  CallRecord& record(std::uint64_t sequence, int rank) const {
    return records_[rank * geometry_.channels + channel(sequence)];
  }
  Task& task(std::uint64_t sequence, int rank) const {
    return tasks_[rank * geometry_.channels + channel(sequence)];
  }

 private:
  std::int64_t channel(std::uint64_t sequence) const {
    return static_cast<std::int64_t>(sequence &
                                     (static_cast<std::uint64_t>(geometry_.channels) - 1));
  }
  // The members on another host, and what they know of this rank.
  struct RemoteHost {
    std::vector<int> ranks;
    std::uint64_t told;  // which done_
    std::uint64_t due;   // at which done_ they are told again
  };
  bool is_reached(std::uint64_t sequence) const {
    return done_ - sequence < std::uint64_t{1} << 63;
  }
  void refresh_slowest();
  std::uint64_t done_by(int rank) const;

  LaneGeometry geometry_;
  int rank_;
  std::int64_t window_bytes_;
  std::byte* windows_;
  CallRecord* records_;
  Task* tasks_;
  Progress* progress_;
  std::vector<bool> is_remote_;  // by rank; empty: nobody is
  std::uint64_t first_;          // sequence number
  std::vector<RemoteHost> remote_hosts_;
  std::uint64_t first_due_ = 0;  // of all remote hosts
  std::uint64_t next_;
  std::uint64_t done_;                 // what progress_[rank_] says
  std::uint64_t slowest_;              // a lower bound of everyone's done
  std::uint64_t completed_ahead_ = 0;  // bit i: operation done_ + 1 + i is complete
};

}  // namespace unisono::engine
