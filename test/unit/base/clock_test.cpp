// SPDX-License-Identifier: BSD-3-Clause
// base/clock: monotonic time and its form for poll(2).
#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace unisono::base::clock_test {
namespace {

TEST(Clock, DoesNotGoBack) {
  std::int64_t last = now_ns();
  EXPECT_GT(last, 0);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t now = now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, PollTimeoutIsRoundedUpAndNeverNegative) {
  EXPECT_EQ(poll_timeout_ms(now_ns() - kSecond), 0);
  EXPECT_EQ(poll_timeout_ms(std::numeric_limits<std::int64_t>::max()),
            std::numeric_limits<int>::max());
  // An hour and a bit: the bit counts as a whole millisecond or has passed by now.
  const int hour_ms = poll_timeout_ms(now_ns() + 3600 * kSecond);
  EXPECT_LE(hour_ms, 3'600'000);
  EXPECT_GT(hour_ms, 3'000'000);
}

}  // namespace
}  // namespace unisono::base::clock_test
