// SPDX-License-Identifier: BSD-3-Clause
// CoreLoss: detects whether other programs have the core while a result lies in this rank's memory.
// Yielding the core in turns is fastest as long as only ranks take turns there. If other programs
// compute, the rank comes back late; if it had slept, its wake-up would have given it the core.
//
// The program notes when a result was there, so the delay until this rank saw it is known exactly.
// The accumulated delay decays at a quarter of the elapsed time; a rest of several slices shows
// that there are others. That conclusion holds for a while, longer each time that they are found
// again at its end.
//
// Ranks that take turns lose a millisecond to each other now and then, and a machine may pause for
// longer, which must not count. A sleeping rank makes the last rank's call longer by a wake-up, and
// ranks that do not sleep later. One thread at a time; no clock of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace unisono::engine {

class CoreLoss {
 public:
  // More than ranks that take turns usually lose to each other.
  static constexpr std::int64_t kLateNs = base::kMillisecond;
  // One loss counts no more than this, however long it was: other programs cause more than one.
  static constexpr std::int64_t kMostNs = 2 * base::kMillisecond;
  static constexpr std::int64_t kLossNs = 3 * base::kMillisecond;
  static constexpr std::int64_t kLossAgainNs = base::kMillisecond;   // at the end of a hold
  static constexpr std::int64_t kAgainNs = 50 * base::kMillisecond;  // how soon after that end
  static constexpr std::int64_t kLeak = 4;
  static constexpr std::int64_t kHoldNs = 200 * base::kMillisecond;
  static constexpr std::int64_t kLongestHoldNs = 16 * kHoldNs;

  // A rank that took turns saw a result which had been there since `done_ns`.
  void saw(std::int64_t done_ns, std::int64_t now_ns) {
    if (now_ns - done_ns < kLateNs || is_there(now_ns)) return;
    const bool again = hold_ns_ != 0 && now_ns - until_ns_ < kAgainNs;
    loss_ns_ -= (now_ns - last_ns_) / kLeak;
    // Soon after a hold one slice is enough, but not if there was none for long enough before it.
    if (!again) loss_ns_ = std::max<std::int64_t>(loss_ns_, 0);
    loss_ns_ += std::min(now_ns - done_ns, kMostNs);
    last_ns_ = now_ns;
    if (loss_ns_ < (again ? kLossAgainNs : kLossNs)) return;
    hold_ns_ = again ? std::min(2 * hold_ns_, kLongestHoldNs) : kHoldNs;
    until_ns_ = now_ns + hold_ns_;
    last_ns_ = until_ns_;
    loss_ns_ = 0;
  }
  // Whether to sleep at once rather than to take turns.
  bool is_there(std::int64_t now_ns) const { return hold_ns_ != 0 && now_ns < until_ns_; }

 private:
  std::int64_t loss_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t hold_ns_ = 0;  // how long it was taken to last; 0: there was none
  std::int64_t until_ns_ = 0;
};

}  // namespace unisono::engine
