// SPDX-License-Identifier: BSD-3-Clause
// When a waiting rank looks thoroughly for reasons why an operation does not end.
#include "comm/watch/thorough_look.hpp"

#include <gtest/gtest.h>

namespace unisono::comm::thorough_look_test {
namespace {

constexpr std::int64_t kLong = base::kSecond, kShort = base::kMillisecond, kNow = 100 * kLong;

TEST(ThoroughLook, IsDueInAWaitThatHasLasted) {
  EXPECT_TRUE(is_thorough_look_due(kNow, 0, kNow - kLong));
  EXPECT_TRUE(is_thorough_look_due(kNow, kNow - kLong, kNow - 2 * kLong));
  EXPECT_TRUE(is_thorough_look_due(kNow, kNow - 2 * kLong, kNow - kLong));
  EXPECT_TRUE(is_thorough_look_due(kNow, kNow - kLong, 0)) << "a wait for no operation";
}

// With many ranks a look takes longer than the delay that put this rank to sleep.
TEST(ThoroughLook, IsNotDueInAWaitThatHasOnlyBegun) {
  EXPECT_FALSE(is_thorough_look_due(kNow, 0, kNow - kShort));
  EXPECT_FALSE(is_thorough_look_due(kNow, kNow - kLong, kNow));
}

TEST(ThoroughLook, IsNotDueAgainAtOnce) {
  EXPECT_FALSE(is_thorough_look_due(kNow, kNow - kShort, kNow - kLong));
}

TEST(ThoroughLook, SparesTheProcessesInAWaitThatIsShortForTheLimit) {
  EXPECT_FALSE(may_look_at_processes(kNow, kLong, kNow - 50 * kShort));
  EXPECT_TRUE(may_look_at_processes(kNow, kLong, kNow - 100 * kShort));
  EXPECT_TRUE(may_look_at_processes(kNow, 100 * kShort, kNow - 50 * kShort));
}

}  // namespace
}  // namespace unisono::comm::thorough_look_test
