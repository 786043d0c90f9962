// SPDX-License-Identifier: BSD-3-Clause
#include "wait/core_contention.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.hpp"

namespace unisono::wait::core_contention_test {
namespace {

constexpr std::int64_t kSlice = CoreContention::kSliceNs;

// The time after `count` slices that were lost `pause` apart, the first of them at `now`.
std::int64_t lose_slices(CoreContention& contention, std::int64_t now, int count,
                         std::int64_t pause) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) now += pause;
    contention.yielded(now, now + kSlice);
    now += kSlice;
  }
  return now;
}

TEST(LongYields, AreManySoonAfterEachOther) {
  constexpr std::int64_t kStart = 1'000'000'000;
  CoreContention contention;
  EXPECT_FALSE(contention.yielded(kStart, kStart + kSlice - 1));
  std::int64_t now =
      lose_slices(contention, kStart, CoreContention::kSlices - 1, CoreContention::kMemoryNs);
  EXPECT_FALSE(contention.is_there(now));
  // Too long after the others: the first of a new row.
  now =
      lose_slices(contention, now + CoreContention::kMemoryNs + 1, CoreContention::kSlices - 1, 0);
  EXPECT_FALSE(contention.is_there(now));
  now = lose_slices(contention, now, 1, 0);
  EXPECT_TRUE(contention.is_there(now));
  EXPECT_TRUE(contention.is_there(now + CoreContention::kHoldNs - 1));
  EXPECT_FALSE(contention.is_there(now + CoreContention::kHoldNs));
  // Still there: one slice tells, and it is looked for half as often.
  std::int64_t hold = CoreContention::kHoldNs;
  for (int look = 0; look < 10; ++look) {
    now = lose_slices(contention, now + hold, 1, 0);
    hold = std::min(2 * hold, CoreContention::kLongestHoldNs);
    EXPECT_TRUE(contention.is_there(now + hold - 1));
    EXPECT_FALSE(contention.is_there(now + hold));
  }
  // Gone in the meantime.
  now = lose_slices(contention, now + hold + CoreContention::kMemoryNs + 1, 1, 0);
  EXPECT_FALSE(contention.is_there(now));
  now = lose_slices(contention, now, CoreContention::kSlices - 1, 0);
  EXPECT_TRUE(contention.is_there(now + CoreContention::kHoldNs - 1));
  EXPECT_FALSE(contention.is_there(now + CoreContention::kHoldNs));
}

// Sixteen ranks on a core: each turn of the others takes its time, and now and then one takes long.
TEST(LongYields, AreNotASliceAmongManyTurns) {
  constexpr std::int64_t kTurn = 100'000;
  CoreContention contention;
  std::int64_t now = 1'000'000'000;
  for (int slice = 0; slice < 1000; ++slice) {
    for (int turn = 0; turn < 20; ++turn, now += kTurn) contention.yielded(now, now + kTurn);
    EXPECT_TRUE(contention.yielded(now, now + kSlice));
    now += kSlice;
    ASSERT_FALSE(contention.is_there(now)) << "slice " << slice;
  }
  // Then a program comes that computes.
  int slices = 0;
  for (; !contention.is_there(now) && slices < 100; ++slices)
    now = lose_slices(contention, now, 1, 0);
  EXPECT_LE(slices * kSlice, 3 * CoreContention::kWindowNs);
  EXPECT_TRUE(contention.is_there(now));
}

// Each of the ranks that share the core may compute for a slice.
TEST(LongYields, AreASliceForEachRankThatSharesTheCore) {
  constexpr int kRanks = 32;
  CoreContention contention;
  contention.expect_turns_of(kRanks);
  std::int64_t now = 1'000'000'000;
  for (int i = 0; i < 100; ++i, now += kRanks * kSlice - 1) {
    EXPECT_FALSE(contention.yielded(now, now + kRanks * kSlice - 1));
    ASSERT_FALSE(contention.is_there(now + kRanks * kSlice - 1));
  }
  int slices = 0;
  for (; !contention.is_there(now) && slices < 200; ++slices, now += kRanks * kSlice) {
    EXPECT_TRUE(contention.yielded(now, now + kRanks * kSlice));
  }
  EXPECT_TRUE(contention.is_there(now));
  EXPECT_GE(slices, CoreContention::kSlices);
}

constexpr std::int64_t kMs = base::kMillisecond;
constexpr std::int64_t kLateBy = 2 * kMs;

TEST(LateResults, TurnsOfOtherRanksAreNone) {
  CoreContention contention;
  for (std::int64_t now = 0; now < base::kSecond; now += kMs) {
    contention.saw_result(now - CoreContention::kSliceNs + 1, now);
    ASSERT_FALSE(contention.is_there(now));
  }
}

TEST(LateResults, ASliceNowAndThenIsNone) {
  CoreContention contention;
  for (std::int64_t now = 0; now < 10 * base::kSecond;
       now += CoreContention::kShareOfTime * kLateBy) {
    contention.saw_result(now - kLateBy, now);
    ASSERT_FALSE(contention.is_there(now));
  }
}

TEST(LateResults, OneThatIsLongIsNone) {
  CoreContention contention;
  contention.saw_result(0, base::kSecond);
  EXPECT_FALSE(contention.is_there(base::kSecond));
}

TEST(LateResults, SlicesInARowHoldForAWhile) {
  CoreContention contention;
  contention.saw_result(0, kLateBy);
  EXPECT_FALSE(contention.is_there(kLateBy));
  const std::int64_t now = 2 * kLateBy;
  contention.saw_result(now - kLateBy, now);
  EXPECT_TRUE(contention.is_there(now));
  EXPECT_TRUE(contention.is_there(now + CoreContention::kHoldNs - 1));
  EXPECT_FALSE(contention.is_there(now + CoreContention::kHoldNs));
}

TEST(LateResults, WhatIsFoundAgainHoldsLonger) {
  CoreContention contention;
  std::int64_t now = kLateBy;
  contention.saw_result(0, now);
  contention.saw_result(0, now);
  std::int64_t hold_ns = CoreContention::kHoldNs;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(contention.is_there(now + hold_ns - 1));
    EXPECT_FALSE(contention.is_there(now + hold_ns));
    now += hold_ns + kLateBy;
    contention.saw_result(now - kLateBy, now);  // one is enough
    hold_ns = std::min(2 * hold_ns, CoreContention::kLongestHoldNs);
  }
  // Long afterwards it begins anew.
  now += 3 * CoreContention::kLongestHoldNs;
  contention.saw_result(now - kLateBy, now);
  EXPECT_FALSE(contention.is_there(now));
}

TEST(LateResults, ASliceAfterManyTurnsIsNotFoundAgain) {
  CoreContention contention;
  contention.saw_result(0, kLateBy);
  contention.saw_result(0, kLateBy);
  std::int64_t now = kLateBy + CoreContention::kHoldNs;
  for (int i = 0; i < 100; ++i) {
    now += 2 * CoreContention::kShareOfTime * kLateBy;
    contention.saw_result(now - kLateBy, now);
    ASSERT_FALSE(contention.is_there(now)) << i;
  }
}

// Each observation prolongs the assumption of the other.
TEST(CoreContention, IsOneForBothObservations) {
  CoreContention contention;
  std::int64_t now = lose_slices(contention, base::kSecond, CoreContention::kSlices, 0);
  ASSERT_TRUE(contention.is_there(now));
  now += CoreContention::kHoldNs + kLateBy;
  ASSERT_FALSE(contention.is_there(now));
  contention.saw_result(now - kLateBy, now);
  EXPECT_TRUE(contention.is_there(now + 2 * CoreContention::kHoldNs - 1)) << "one is enough";
  EXPECT_FALSE(contention.is_there(now + 2 * CoreContention::kHoldNs));
}

}  // namespace
}  // namespace unisono::wait::core_contention_test
