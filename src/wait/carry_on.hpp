// SPDX-License-Identifier: BSD-3-Clause
// CarryOn: a function of the library's caller that a waiting rank calls now and then, so that the
// caller's own communication goes on meanwhile. A rank that waits in a collective then holds up no
// rank that waits for it elsewhere, for instance in MPI_Ssend.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace unisono::wait {

struct CarryOn {
  void (*function)(void* user) = nullptr;  // null: there is none
  void* user = nullptr;
  // How long a call takes that finds nothing to do: the least that a wait of this job has seen.
  // 0: not known.
  std::atomic<std::int64_t> idle_ns{0};

  explicit operator bool() const { return function != nullptr; }
  void operator()() const { function(user); }
};

// CarryOnPace: when a waiting rank calls that function. The function does not tell whether it had
// something to do, but takes longer then. A quarter of the last calls decides, so that neither a
// lost core nor a rare check of descriptors within the function counts. While messages come in a
// row, the rank stays awake: each would otherwise wait for the end of a sleep. One thread.
class CarryOnPace {
 public:
  static constexpr std::size_t kCalls = 16;
  // Often enough for long messages in many parts, and rare beside a look at a flag.
  static constexpr std::uint32_t kTurns = 64;
  static constexpr std::uint32_t kTurnsInARow = 8;
  // A sleeping rank wakes up for it, at first soon, then more and more rarely.
  static constexpr std::int64_t kFirstSleepNs = 50'000;
  static constexpr std::int64_t kLongestSleepNs = 1'000'000;

  // One call took so long. True if these were kCalls, and many of them had something to do.
  bool add(std::int64_t took_ns, std::atomic<std::int64_t>& idle_ns) {
    took_ns_[count_++] = took_ns;
    if (count_ < kCalls) return false;
    count_ = 0;
    const auto quarter = took_ns_.end() - kCalls / 4;
    std::nth_element(took_ns_.begin(), quarter, took_ns_.end());
    const std::int64_t idle = idle_ns.load(std::memory_order_relaxed);
    const bool busy = idle != 0 && 2 * *quarter > 3 * idle + 2 * kClockNs;
    in_a_row_ = busy;
    if (busy) {
      sleep_ns_ = kFirstSleepNs;
    } else {
      // It follows calls that have become slower, for instance after a connection was made.
      const std::int64_t found = std::max<std::int64_t>(*quarter, 1);
      idle_ns.store(idle == 0 ? found : std::min(found, idle + idle / 64 + 1),
                    std::memory_order_relaxed);
    }
    return busy;
  }

  // Earlier calls count no more.
  void begin() { count_ = 0; }

  // A rank that is awake looks for its operations so often between two calls.
  std::uint32_t turns() const { return in_a_row_ ? kTurnsInARow : kTurns; }

  // How long the rank may sleep until the next call.
  std::int64_t next_sleep_ns() {
    const std::int64_t sleep = sleep_ns_;
    sleep_ns_ = std::min(2 * sleep_ns_, kLongestSleepNs);
    return sleep;
  }

 private:
  static constexpr std::int64_t kClockNs = 40;  // two readings of a clock may differ by so much

  std::array<std::int64_t, kCalls> took_ns_;  // the first count_; each wait makes one of these
  std::size_t count_ = 0;
  bool in_a_row_ = false;
  std::int64_t sleep_ns_ = kFirstSleepNs;
};

}  // namespace unisono::wait
