// SPDX-License-Identifier: BSD-3-Clause
// CoreContention: whether other programs compute on a rank's cores. Ranks that take turns there get
// the core back in microseconds, and yielding is then fastest. Among other programs a yield costs
// time slices, and a wake-up a few microseconds; so the rank should sleep at once.
//
// Two observations show it, and either is enough. A yield lasted for a slice: for waits that poll.
// A result had lain in memory for a slice when the rank saw it: for results that carry their time.
// Contention is then assumed for a while, longer each time that it is found again at the end.
//
// Where several ranks take turns on a core, each may compute for a slice before the first has it
// back. So only a delay of a slice for each of them counts. Another program is not worse for them:
// it gets the same share of the core as each rank. And while this rank itself computes for long,
// as in calls with long vectors, the others need as much time: such delays prove nothing.
//
// One per rank; all its threads use it. Racy updates may miscount; harmless. No clock of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace unisono::wait {

class CoreContention {
 public:
  // For a rank alone on its core, a delay of this length was a slice of another program.
  static constexpr std::int64_t kSliceNs = 1'000'000;

  // A few long yields among many short ones prove nothing, because ranks that sleep and wake each
  // other are slower than ranks that take turns. So kSlices are needed, each within this time of
  // the one before, ...
  static constexpr int kSlices = 3;
  static constexpr std::int64_t kMemoryNs = 500'000'000;
  // ... and they must make up half of the time spent in yields, counted over a multiple of this.
  static constexpr std::int64_t kWindowNs = 20'000'000;
  // The other ranks of the core may work as long as this rank worked between them. The slices must
  // exceed this multiple of what of that is not in short yields. (A root does more than others.)
  static constexpr std::int64_t kWorkOfOthers = 2;

  // Late results: the sum of the delays has to reach this, less a share of the elapsed time. Ranks
  // that take turns lose a slice to each other now and then.
  static constexpr std::int64_t kLateNs = 3 * kSliceNs;
  static constexpr std::int64_t kShareOfTime = 4;
  // One delay counts no more than this, however long it was: a machine may pause for longer.
  static constexpr std::int64_t kMostLateNs = 2 * kSliceNs;
  // So soon after assumed contention, one slice is enough.
  static constexpr std::int64_t kAgainNs = 50'000'000;

  // How long contention is assumed before the next check. A check costs one more slice of 2 to 4 ms
  // if other programs are still there. Where each of many ranks does that, it costs one operation
  // in a hundred. So each check that finds them doubles the time.
  static constexpr std::int64_t kHoldNs = 100'000'000;
  static constexpr std::int64_t kLongestHoldNs = 16 * kHoldNs;

  // So many ranks share the core. Before the first wait.
  void expect_turns_of(int ranks) {
    slice_ns_.set(ranks * kSliceNs);
    other_ranks_.set(ranks - 1);
  }
  // After a yield: whether it cost a slice. Then the caller tells more by lost_slice().
  bool yielded(std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t away_ns = to_ns - from_ns;
    away_ns_.add(away_ns);
    return away_ns >= slice_ns_.get();
  }
  // thread_time_ns: the processor time of the thread that lost it.
  void lost_slice(std::int64_t from_ns, std::int64_t to_ns, std::int64_t thread_time_ns);
  // A rank that took turns has seen a result that had been there since `done_ns`.
  void saw_result(std::int64_t done_ns, std::int64_t now_ns) {
    if (now_ns - done_ns < slice_ns_.get()) [[likely]]
      return;
    count_late(now_ns - done_ns, now_ns);
  }
  // Whether to sleep at once rather than to take turns.
  bool is_there(std::int64_t now_ns) const { return now_ns < until_ns_.get(); }

 private:
  class Word {
   public:
    explicit Word(std::int64_t value = 0) : value_(value) {}
    std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
    void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
    void add(std::int64_t more) { set(get() + more); }

   private:
    std::atomic<std::int64_t> value_;
  };
  void count_late(std::int64_t late_ns, std::int64_t now_ns);
  void assume(bool again, std::int64_t now_ns);

  Word slice_ns_{kSliceNs};  // the shortest delay that counts
  Word other_ranks_;         // that share the core
  Word until_ns_;            // the end of the assumed contention
  Word hold_ns_;             // how long it was assumed; 0: there was none
  Word away_ns_;             // in all yields
  Word lost_ns_;             // in those that cost a slice
  Word slices_;              // how many did
  Word last_slice_ns_;       // the end of the last one, or of the contention assumed for it
  Word thread_time_ns_;      // at the end of the last one
  Word worked_ns_;           // processor time of this rank between them
  Word late_ns_;             // the sum of delays
  Word last_late_ns_;        // when it was last computed
};

}  // namespace unisono::wait
