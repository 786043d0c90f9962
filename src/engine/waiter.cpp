// SPDX-License-Identifier: BSD-3-Clause
#include "engine/waiter.hpp"

#include "base/clock.hpp"

namespace unisono::engine {
namespace {
// The clock costs as much as some looks at a flag, and so does giving the core away.
constexpr int kSpinsPerClock = 32;
}  // namespace

WaitPolicy WaitPolicy::for_ranks(bool oversubscribed, std::int64_t spin_setting_ns) {
  WaitPolicy policy;
  if (oversubscribed) policy.spin_ns = 0;
  if (spin_setting_ns >= 0) policy.spin_ns = spin_setting_ns;
  return policy;
}

Waiter::Next Waiter::next() {
  if (policy_.spin_ns > 0 && ++spins_ % kSpinsPerClock != 0) return Next::spin;
  const std::int64_t now = base::now_ns();
  if (started_ns_ == 0) started_ns_ = now;
  const std::int64_t waited = now - started_ns_;
  if (waited < policy_.spin_ns) return Next::spin;
  return waited < policy_.spin_ns + policy_.yield_ns ? Next::yield : Next::sleep;
}

}  // namespace unisono::engine
