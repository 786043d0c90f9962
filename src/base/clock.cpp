// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.hpp"

#include <ctime>

#include <algorithm>
#include <limits>

namespace unisono::base {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

int poll_timeout_ms(std::int64_t deadline_ns) {
  const std::int64_t left = deadline_ns - now_ns();
  if (left <= 0) return 0;
  const std::int64_t rounded_ms = left / kMillisecond + (left % kMillisecond != 0);
  return static_cast<int>(std::min<std::int64_t>(rounded_ms, std::numeric_limits<int>::max()));
}

}  // namespace unisono::base
