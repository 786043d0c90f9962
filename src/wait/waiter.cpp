// SPDX-License-Identifier: BSD-3-Clause
#include "wait/waiter.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "wait/short_slices.hpp"

namespace unisono::wait {
namespace {
// Reading the clock costs as much as several looks at a flag, and so does a yield.
constexpr int kSpinsPerClock = 32;
}  // namespace

WaitPolicy WaitPolicy::for_ranks(bool oversubscribed, std::int64_t spin_setting_ns) {
  WaitPolicy policy;
  if (oversubscribed) {
    policy.spin_ns = 0;
    policy.short_slices = ShortSlices::at_once;
  }
  if (spin_setting_ns >= 0) policy.spin_ns = spin_setting_ns;
  return policy;
}

void ForeignLoad::slice_lost(std::int64_t from_ns, std::int64_t to_ns) {
  const std::int64_t slice_ns = to_ns - from_ns;
  int slices = 1;
  std::int64_t lost_ns = slice_ns, away_ns = slice_ns;
  if (from_ns - until_ns_.load(std::memory_order_relaxed) <= kMemoryNs) {
    slices += slices_.load(std::memory_order_relaxed);
    lost_ns += lost_ns_.load(std::memory_order_relaxed);
    away_ns = away_ns_.load(std::memory_order_relaxed);
  }
  std::int64_t hold_ns = 0;
  if (slices >= kSlices && lost_ns >= away_ns / 2) {
    const std::int64_t before_ns = hold_ns_.load(std::memory_order_relaxed);
    hold_ns =
        before_ns == 0 || slices == kSlices ? kHoldNs : std::min(2 * before_ns, kLongestHoldNs);
  }
  if (away_ns > kWindowNs) {
    lost_ns /= 2;
    away_ns /= 2;
  }
  slices_.store(slices, std::memory_order_relaxed);
  lost_ns_.store(lost_ns, std::memory_order_relaxed);
  away_ns_.store(away_ns, std::memory_order_relaxed);
  hold_ns_.store(hold_ns, std::memory_order_relaxed);
  until_ns_.store(to_ns + hold_ns, std::memory_order_relaxed);
}

Waiter::Next Waiter::next() {
  if (policy_.spin_ns > 0 && ++spins_ % kSpinsPerClock != 0) return Next::spin;
  return next_at(base::now_ns());
}

Waiter::Next Waiter::next_at(std::int64_t now_ns) {
  if (yielded_ns_ != 0 && load_->given_away(yielded_ns_, now_ns) &&
      policy_.short_slices != ShortSlices::never) {
    ask_for_short_slices();
  }
  yielded_ns_ = 0;
  if (started_ns_ == 0) started_ns_ = now_ns;
  const std::int64_t waited = now_ns - started_ns_;
  if (waited < policy_.spin_ns) return Next::spin;
  if (policy_.short_slices == ShortSlices::at_once) ask_for_short_slices();
  if (waited >= policy_.spin_ns + policy_.yield_ns || load_->is_there(now_ns)) return Next::sleep;
  yielded_ns_ = now_ns;
  return Next::yield;
}

}  // namespace unisono::wait
