// SPDX-License-Identifier: BSD-3-Clause
// When a waiting rank stays awake for its caller's own communication: carry_on.hpp.
#include "wait/carry_on.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace unisono::wait::carry_on_test {
namespace {

constexpr std::int64_t kIdle = 100, kMessage = 400;

class CarryOnRow : public testing::Test {
 protected:
  // So many windows of calls, which take the times in turn. How many of the windows are a row?
  int rows(int windows, const std::vector<std::int64_t>& times) {
    int found = 0;
    for (std::size_t call = 0; call < static_cast<std::size_t>(windows) * CarryOnPace::kCalls;
         ++call) {
      found += pace_.add(times[call % times.size()], idle_ns_) ? 1 : 0;
    }
    return found;
  }

  CarryOnPace pace_;
  std::atomic<std::int64_t> idle_ns_{0};
};

TEST_F(CarryOnRow, IsSeenInItsFirstWindow) {
  EXPECT_EQ(rows(3, {kIdle}), 0);
  EXPECT_EQ(idle_ns_, kIdle);
  EXPECT_EQ(rows(1, {kMessage}), 1);
}

TEST_F(CarryOnRow, IsSeenAsLongAsItLasts) {
  rows(1, {kIdle});
  EXPECT_EQ(pace_.turns(), CarryOnPace::kTurns);
  EXPECT_EQ(rows(100'000, {kMessage}), 100'000);
  EXPECT_EQ(pace_.turns(), CarryOnPace::kTurnsInARow);
  EXPECT_EQ(rows(1, {kIdle}), 0);
  EXPECT_EQ(pace_.turns(), CarryOnPace::kTurns);
}

TEST_F(CarryOnRow, HasAMessageInAQuarterOfTheCalls) {
  rows(1, {kIdle});
  EXPECT_EQ(rows(8, {kIdle, kIdle, kIdle, kMessage}), 8);
}

TEST_F(CarryOnRow, IsNotALostCoreOrARareCheckOfDescriptors) {
  rows(1, {kIdle});
  EXPECT_EQ(rows(8, {kIdle, kIdle, kIdle, kIdle, kIdle, kIdle, kIdle, 20 * kIdle}), 0);
  std::vector<std::int64_t> lost(CarryOnPace::kCalls, kIdle);
  lost.back() = 4'000'000;
  EXPECT_EQ(rows(8, lost), 0);
}

TEST_F(CarryOnRow, IsNotWhatAClockMayGetWrong) {
  rows(1, {10});
  EXPECT_EQ(rows(8, {10, 30}), 0);
}

TEST_F(CarryOnRow, IsSeenAlsoIfTheFirstCallsWereBusy) {
  EXPECT_EQ(rows(4, {kMessage}), 0);  // nothing to compare with yet
  EXPECT_EQ(rows(1, {kIdle}), 0);
  EXPECT_EQ(rows(1, {kMessage}), 1);
}

TEST_F(CarryOnRow, IsNotAFunctionThatHasBecomeALittleSlower) {
  rows(1, {kIdle});
  EXPECT_EQ(rows(64, {kIdle * 14 / 10}), 0);
  EXPECT_EQ(rows(64, {kIdle * 19 / 10}), 0);  // beside the one before
}

TEST_F(CarryOnRow, SleepsDoubleUntilThereIsOne) {
  rows(1, {kIdle});
  std::int64_t expected = CarryOnPace::kFirstSleepNs;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(pace_.next_sleep_ns(), expected);
    expected = std::min(2 * expected, CarryOnPace::kLongestSleepNs);
  }
  EXPECT_EQ(expected, CarryOnPace::kLongestSleepNs);
  rows(1, {kMessage});
  EXPECT_EQ(pace_.next_sleep_ns(), CarryOnPace::kFirstSleepNs);
}

TEST_F(CarryOnRow, OfEarlierCallsCountsNoMoreAfterBegin) {
  rows(1, {kIdle});
  for (std::size_t i = 0; i + 1 < CarryOnPace::kCalls; ++i) {
    EXPECT_FALSE(pace_.add(kMessage, idle_ns_));
  }
  pace_.begin();
  EXPECT_EQ(rows(1, {kIdle}), 0);
}

}  // namespace
}  // namespace unisono::wait::carry_on_test
