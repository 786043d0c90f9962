// SPDX-License-Identifier: BSD-3-Clause
// Waiter: decides what a blocked rank does next. It spins while the answer may come at once. Then
// it yields the core in turns, because the scheduler may have put the awaited rank on this core.
// Then it sleeps. With more ranks than cores it never spins.
//
// Where another program computes on the core, a yield costs a whole time slice, and a wake-up a few
// microseconds. After such a yield was seen, ranks sleep at once for a while. Threads that share
// cores ask for short slices (wait/short_slices.hpp) from the first wait in which they yield. One
// Waiter per wait; a value.
#pragma once

#include <atomic>
#include <cstdint>

namespace unisono::wait {

enum class ShortSlices : std::uint8_t { never, after_a_lost_one, at_once };

struct WaitPolicy {
  std::int64_t spin_ns = 2'000;
  std::int64_t yield_ns = 450'000;  // spin and yield together stay below 1 ms, after which an idle
                                    // rank uses no core
  ShortSlices short_slices = ShortSlices::after_a_lost_one;

  // Ranks that share a core need equal slices. One with shorter slices would get the core back
  // before the others had a turn.
  static WaitPolicy for_ranks(bool oversubscribed, std::int64_t spin_setting_ns);
};

// Contention of a rank's cores with other programs, seen by yields that cost a time slice. A few
// such yields among many cheap ones prove nothing, because ranks that sleep and wake each other are
// slower than ranks that take turns. All threads of the rank use it. Racy updates may miscount;
// harmless.
class ForeignLoad {
 public:
  // A yield that lasts this long was a slice of another program; ranks that take turns are faster.
  static constexpr std::int64_t kSliceNs = 1'000'000;
  static constexpr int kSlices = 3;
  // Contention needs kSlices such yields, each within this time of the one before, ...
  static constexpr std::int64_t kMemoryNs = 500'000'000;
  // ... and they must make up half of the time lost to yields, counted over a multiple of this.
  static constexpr std::int64_t kWindowNs = 20'000'000;
  // How long contention is assumed before the next check. A check costs one more slice of 2 to 4 ms
  // if the load is still there. Where each of many ranks does that, it costs one operation in a
  // hundred. So each check that finds the load doubles the time.
  static constexpr std::int64_t kHoldNs = 100'000'000;
  static constexpr std::int64_t kLongestHoldNs = 16 * kHoldNs;

  // Whether the yield cost a slice.
  bool given_away(std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t away_ns = to_ns - from_ns;
    away_ns_.store(away_ns_.load(std::memory_order_relaxed) + away_ns, std::memory_order_relaxed);
    if (away_ns < kSliceNs) [[likely]]
      return false;
    slice_lost(from_ns, to_ns);
    return true;
  }
  bool is_there(std::int64_t now_ns) const {
    return now_ns < until_ns_.load(std::memory_order_relaxed);
  }

 private:
  void slice_lost(std::int64_t from_ns, std::int64_t to_ns);

  std::atomic<std::int64_t> until_ns_{0};  // the end of the assumed contention, or of the last
                                           // slice
  std::atomic<std::int64_t> hold_ns_{0};   // how long contention was assumed; 0: there was none
  std::atomic<std::int64_t> away_ns_{0};   // time lost in all yields
  std::atomic<std::int64_t> lost_ns_{0};   // time lost in those that cost a slice
  std::atomic<int> slices_{0};
};

class Waiter {
 public:
  Waiter(const WaitPolicy& policy, ForeignLoad& load) : policy_(policy), load_(&load) {}

  enum class Next : std::uint8_t { spin, yield, sleep };
  Next next();
  // The same at a given time.
  Next next_at(std::int64_t now_ns);
  // Call it after a sleep: more may follow soon after the event that woke the rank.
  void woken() { started_ns_ = 0; }

 private:
  WaitPolicy policy_;
  ForeignLoad* load_;
  std::int64_t started_ns_ = 0;
  std::int64_t yielded_ns_ = 0;  // 0: no yield since the last look at the clock
  int spins_ = 0;
};

// One pause of a spinning core.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace unisono::wait
