// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.hpp"

#include <ctime>

#include <algorithm>
#include <limits>

namespace unisono::base {

namespace {

std::int64_t time_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace

std::int64_t now_ns() { return time_of(CLOCK_MONOTONIC); }

std::int64_t thread_time_ns() { return time_of(CLOCK_THREAD_CPUTIME_ID); }

int poll_timeout_ms(std::int64_t deadline_ns) {
  const std::int64_t left = deadline_ns - now_ns();
  if (left <= 0) return 0;
  const std::int64_t rounded_ms = left / kMillisecond + (left % kMillisecond != 0);
  return static_cast<int>(std::min<std::int64_t>(rounded_ms, std::numeric_limits<int>::max()));
}

}  // namespace unisono::base
