// SPDX-License-Identifier: BSD-3-Clause
// Waiter: decides what a blocked rank does next. It spins while the answer may come at once. Then
// it yields the core in turns, because the scheduler may have put the awaited rank on this core.
// Then it sleeps. With more ranks than cores it never spins, and the more ranks take turns on a
// core, the longer it yields: a call lasts a turn of all of them, and a sleeper would delay the
// next.
//
// Where another program computes on the core, a yield costs a whole time slice, and a wake-up a few
// microseconds. After such yields were seen, ranks sleep at once for a while
// (wait/core_contention.hpp). Threads that share
// cores ask for short slices (wait/short_slices.hpp) from the first wait in which they yield. One
// Waiter per wait; a value.
#pragma once

#include <cstdint>

#include "wait/core_contention.hpp"

namespace unisono::wait {

enum class ShortSlices : std::uint8_t { never, after_a_lost_one, at_once };

// Times of the machine, from its file. Each counts for a second at most, so that a rank that waits
// in vain sleeps in the end.
struct WaitTimes {
  std::int64_t spin_ns = 0;  // of a rank that has a core of its own
  std::int64_t turn_ns = 0;  // of a rank that looks and yields, where ranks share a core
  // A background thread spins for so long before it sleeps, where ranks have a core each. An
  // operation that is under way goes on within this time; a rank that computes may take longer.
  std::int64_t background_spin_ns = 0;
};

struct WaitPolicy {
  std::int64_t spin_ns = 0;
  std::int64_t background_spin_ns = 0;
  std::int64_t yield_ns = 450'000;  // while ranks take short turns on a core, an idle rank uses no
                                    // core after a millisecond
  ShortSlices short_slices = ShortSlices::after_a_lost_one;

  // Ranks that share a core need equal slices. One with shorter slices would get the core back
  // before the others had a turn. `ranks_per_core`: those that take turns on the fullest core.
  static WaitPolicy for_ranks(const WaitTimes& times, bool oversubscribed,
                              std::int64_t spin_setting_ns, int ranks_per_core = 1);
};

class Waiter {
 public:
  Waiter(const WaitPolicy& policy, CoreContention& contention)
      : policy_(policy), contention_(&contention) {}

  enum class Next : std::uint8_t { spin, yield, sleep };
  Next next();
  // The same at a given time.
  Next next_at(std::int64_t now_ns);
  // Call it after a sleep: more may follow soon after the event that woke the rank.
  void woken() { started_ns_ = 0; }

 private:
  WaitPolicy policy_;
  CoreContention* contention_;
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
