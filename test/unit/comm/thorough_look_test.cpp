// SPDX-License-Identifier: BSD-3-Clause
// When a waiting rank looks thoroughly for reasons why an operation does not end.
#include "comm/watch/thorough_look.hpp"

#include <gtest/gtest.h>

namespace unisono::comm::thorough_look_test {
namespace {

constexpr std::int64_t kLong = base::kSecond, kShort = base::kMillisecond, kNow = 100 * kLong;
constexpr std::int64_t kPause = 10 * kShort;

bool is_due(std::int64_t now_ns, std::int64_t looked_ns, std::int64_t waits_from_ns) {
  return is_thorough_look_due(now_ns, looked_ns, waits_from_ns, kPause);
}

TEST(ThoroughLook, IsDueInAWaitThatHasLasted) {
  EXPECT_TRUE(is_due(kNow, 0, kNow - kLong));
  EXPECT_TRUE(is_due(kNow, kNow - kLong, kNow - 2 * kLong));
  EXPECT_TRUE(is_due(kNow, kNow - 2 * kLong, kNow - kLong));
  EXPECT_TRUE(is_due(kNow, kNow - kLong, 0)) << "a wait for no operation";
}

// With many ranks a look takes longer than the delay that put this rank to sleep.
TEST(ThoroughLook, IsNotDueInAWaitThatHasOnlyBegun) {
  EXPECT_FALSE(is_due(kNow, 0, kNow - kShort));
  EXPECT_FALSE(is_due(kNow, kNow - kLong, kNow));
}

TEST(ThoroughLook, IsNotDueAgainAtOnce) { EXPECT_FALSE(is_due(kNow, kNow - kShort, kNow - kLong)); }

// With as many ranks as here, the looks of all took most of the cores, and calls a hundred times as
// long.
TEST(ThoroughLook, OfAllRanksOfACoreTakeASmallPartOfIt) {
  constexpr std::int64_t kLook = 370 * base::kMicrosecond;
  for (const int ranks : {1, 2, 16, 64, 140}) {
    EXPECT_LE(20 * ranks * kLook, pause_between_looks_ns(kLook, ranks, 2 * kLong)) << ranks;
  }
  EXPECT_EQ(pause_between_looks_ns(0, 1, kLong), kThoroughlyEveryNs);
  EXPECT_EQ(pause_between_looks_ns(kLook, 1, kLong), kThoroughlyEveryNs) << "a short one";
  EXPECT_EQ(pause_between_looks_ns(kLook, 0, kLong), kThoroughlyEveryNs);
  EXPECT_FALSE(is_thorough_look_due(kNow, kNow - kLong, kNow - kLong, kLong));
  EXPECT_TRUE(is_thorough_look_due(kNow, kNow - kLong, kNow - kLong, kLong - 1));
}

// Looks that are further apart than half of UNISONO_DETECT_TIMEOUT never find a stopped process.
TEST(ThoroughLook, ComesInTheEndHoweverLongItTakes) {
  for (const int ranks : {1, 140, 100'000, 2'000'000'000}) {
    for (const std::int64_t most_ns : {kShort, 200 * kShort, kLong}) {
      const std::int64_t pause_ns = pause_between_looks_ns(kNow, ranks, most_ns);
      EXPECT_LE(pause_ns, std::max(most_ns, kThoroughlyEveryNs)) << ranks;
      EXPECT_GE(pause_ns, kThoroughlyEveryNs) << ranks;
    }
  }
  EXPECT_EQ(pause_between_looks_ns(kLong, 100, 200 * kShort), 200 * kShort);
}

TEST(ThoroughLook, SparesTheProcessesInAWaitThatIsShortForTheLimit) {
  EXPECT_FALSE(may_look_at_processes(kNow, kLong, kNow - 50 * kShort));
  EXPECT_TRUE(may_look_at_processes(kNow, kLong, kNow - 100 * kShort));
  EXPECT_TRUE(may_look_at_processes(kNow, 100 * kShort, kNow - 50 * kShort));
}

}  // namespace
}  // namespace unisono::comm::thorough_look_test
