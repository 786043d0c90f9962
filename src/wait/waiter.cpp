// SPDX-License-Identifier: BSD-3-Clause
#include "wait/waiter.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "wait/background.hpp"
#include "wait/short_slices.hpp"

namespace unisono::wait {
namespace {
// Reading the clock costs as much as several looks at a flag, and so does a yield.
constexpr int kSpinsPerClock = 32;
// A call takes about a turn of each rank that shares the core. A rank yields for as long as so many
// turns of all ranks. Otherwise one delay would put many ranks to sleep; a call that wakes many is
// again so slow that its ranks sleep.
constexpr int kTurns = 32;

Waiter::Next next_in_background(const WaitPolicy& policy, std::int64_t waited_ns) {
  const bool spins = policy.spin_ns > 0;
  if (spins && waited_ns < std::max(policy.spin_ns, policy.background_spin_ns)) {
    return Waiter::Next::spin;
  }
  if (policy.short_slices != ShortSlices::never) ask_for_short_slices();
  return Waiter::Next::sleep;
}

}  // namespace

WaitPolicy WaitPolicy::for_ranks(const WaitTimes& times, bool oversubscribed,
                                 std::int64_t spin_setting_ns, int ranks_per_core) {
  WaitPolicy policy;
  policy.spin_ns = std::min(times.spin_ns, base::kSecond);
  policy.background_spin_ns = std::min(times.background_spin_ns, base::kSecond);
  const std::int64_t turns_ns = ranks_per_core * kTurns * std::min(times.turn_ns, base::kSecond);
  policy.yield_ns = std::clamp(turns_ns, policy.yield_ns, base::kSecond);
  if (oversubscribed) {
    policy.spin_ns = 0;
    policy.short_slices = ShortSlices::at_once;
  }
  if (spin_setting_ns >= 0) policy.spin_ns = spin_setting_ns;
  return policy;
}

Waiter::Next Waiter::next() {
  if (policy_.spin_ns > 0 && ++spins_ % kSpinsPerClock != 0) return Next::spin;
  return next_at(base::now_ns());
}

Waiter::Next Waiter::next_at(std::int64_t now_ns) {
  if (yielded_ns_ != 0 && contention_->yielded(yielded_ns_, now_ns)) {
    contention_->lost_slice(yielded_ns_, now_ns, base::thread_time_ns());
    if (policy_.short_slices != ShortSlices::never) ask_for_short_slices();
  }
  yielded_ns_ = 0;
  if (started_ns_ == 0) started_ns_ = now_ns;
  const std::int64_t waited = now_ns - started_ns_;
  if (is_background_thread()) return next_in_background(policy_, waited);
  if (waited < policy_.spin_ns) return Next::spin;
  if (policy_.short_slices == ShortSlices::at_once) ask_for_short_slices();
  if (waited >= policy_.spin_ns + policy_.yield_ns || contention_->is_there(now_ns))
    return Next::sleep;
  yielded_ns_ = now_ns;
  return Next::yield;
}

}  // namespace unisono::wait
