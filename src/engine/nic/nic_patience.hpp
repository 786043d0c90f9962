// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits for the NIC path's result in memory, and when it takes a packet to be lost. Used
// by NicReduction and NicAllgather, and by waits that have other work beside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/clock.hpp"
#include "base/prng.hpp"

namespace unisono::engine::nic_patience {

// A rank that no longer polls memory sleeps until the program wakes it, but for a limited time that
// grows. It has to notice lost packets and the end of unisonod.
inline constexpr std::int64_t kFirstSleep = 10 * base::kMillisecond;
inline constexpr std::int64_t kLongestSleep = 50 * base::kMillisecond;
// ... and so long if nothing wakes it.
inline constexpr std::int64_t kPauseNs = base::kMillisecond;
// After so long it takes a packet to be lost, and asks; each time the delay is longer.
inline constexpr std::int64_t kFirstPatience = 10 * base::kMillisecond;
inline constexpr std::int64_t kLongestPatience = base::kSecond / 2;

// When the root of a barrier on query repeats its question: after delays that double within bounds.
// So the number of questions grows with the logarithm of the wait, and then by one for each longest
// delay.
class BackOff {
 public:
  struct Bounds {
    std::int64_t first_ns = 0, most_ns = 0;

    // A machine file's numbers may be any. A question goes to all hosts, so a root must not ask
    // each time that it looks.
    static Bounds of(double first_ns, double most_ns) {
      constexpr double kLeast = 100 * base::kMicrosecond, kMost = base::kSecond;
      const double first = std::clamp(first_ns, kLeast, kMost);
      return {static_cast<std::int64_t>(first),
              static_cast<std::int64_t>(std::clamp(most_ns, first, kMost))};
    }
  };
  explicit BackOff(const Bounds& bounds) : bounds_(bounds) {}
  // The next look begins the first delay.
  void restart() {
    delay_ns_ = 0;
    due_ns_ = std::numeric_limits<std::int64_t>::max();
  }
  // Whether it is time for a question; the next one is then due later.
  bool ends(std::int64_t now_ns) {
    const bool has_begun = delay_ns_ > 0;
    if (has_begun && now_ns < due_ns_) return false;
    delay_ns_ = has_begun ? std::min(2 * delay_ns_, bounds_.most_ns) : bounds_.first_ns;
    due_ns_ = now_ns + delay_ns_;
    return has_begun;
  }
  // A time without end before the first look.
  std::int64_t due_ns() const { return due_ns_; }

 private:
  const Bounds bounds_;
  std::int64_t delay_ns_ = 0;
  std::int64_t due_ns_ = std::numeric_limits<std::int64_t>::max();
};

// How long a rank waits before it asks for lost packets. Random, so that ranks which lack the same
// packet do not all ask at once.
class RepairDelay {
 public:
  explicit RepairDelay(int rank) : random_(static_cast<std::uint64_t>(rank)) {}
  void restart() { ns_ = random_from(kFirstPatience); }
  void lengthen() { ns_ = random_from(std::min(2 * ns_, kLongestPatience)); }
  std::int64_t ns() const { return ns_; }

 private:
  std::int64_t random_from(std::int64_t least_ns) {
    return least_ns +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(least_ns)));
  }
  base::Prng random_;
  std::int64_t ns_ = 0;
};

}  // namespace unisono::engine::nic_patience
