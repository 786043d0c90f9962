// SPDX-License-Identifier: BSD-3-Clause
#include "wait/core_contention.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.hpp"

namespace unisono::wait::core_contention_test {
namespace {

constexpr std::int64_t kSlice = CoreContention::kSliceNs;

// A yield, after which the thread has used so much processor time. Whether it cost a slice.
bool yield(CoreContention& contention, std::int64_t from_ns, std::int64_t to_ns,
           std::int64_t thread_time_ns = 0) {
  if (!contention.yielded(from_ns, to_ns)) return false;
  contention.lost_slice(from_ns, to_ns, thread_time_ns);
  return true;
}

// The time after `count` slices that were lost `pause` apart, the first of them at `now`.
std::int64_t lose_slices(CoreContention& contention, std::int64_t now, int count,
                         std::int64_t pause) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) now += pause;
    yield(contention, now, now + kSlice);
    now += kSlice;
  }
  return now;
}

TEST(LongYields, AreManySoonAfterEachOther) {
  constexpr std::int64_t kStart = 1'000'000'000;
  CoreContention contention;
  EXPECT_FALSE(yield(contention, kStart, kStart + kSlice - 1));
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
    for (int turn = 0; turn < 20; ++turn, now += kTurn) yield(contention, now, now + kTurn);
    EXPECT_TRUE(yield(contention, now, now + kSlice));
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
    EXPECT_FALSE(yield(contention, now, now + kRanks * kSlice - 1));
    ASSERT_FALSE(contention.is_there(now + kRanks * kSlice - 1));
  }
  int slices = 0;
  for (; !contention.is_there(now) && slices < 200; ++slices, now += kRanks * kSlice) {
    EXPECT_TRUE(yield(contention, now, now + kRanks * kSlice));
  }
  EXPECT_TRUE(contention.is_there(now));
  EXPECT_GE(slices, CoreContention::kSlices);
}

constexpr int kRanksOfACore = 4;

// A rank computes for `work_ns` before each yield, and so do the others of its core. A program uses
// `program_ns` of each turn. Returns the number of yields until contention is assumed, 1000 if it
// is not.
int yields_until_found(CoreContention& contention, std::int64_t work_ns, std::int64_t program_ns) {
  std::int64_t now = base::kSecond, thread_time = base::kSecond;
  for (int yields = 0; yields < 1000; ++yields) {
    now += work_ns;
    thread_time += work_ns;
    const std::int64_t back = now + (kRanksOfACore - 1) * work_ns + program_ns;
    yield(contention, now, back, thread_time);
    now = back;
    if (contention.is_there(now)) return yields + 1;
  }
  return 1000;
}

TEST(LongYields, AreNotTheWorkOfOtherRanksInALongCall) {
  for (const std::int64_t work_ns : {2 * kSlice, 10 * kSlice}) {
    CoreContention contention;
    contention.expect_turns_of(kRanksOfACore);
    EXPECT_EQ(yields_until_found(contention, work_ns, 0), 1000);
    // Short calls follow, beside a program that computes.
    EXPECT_LE(yields_until_found(contention, kSlice / 100, kRanksOfACore * kSlice), 10);
  }
}

TEST(LongYields, AreThoseOfAProgramWhereCallsAreShort) {
  CoreContention contention;
  contention.expect_turns_of(kRanksOfACore);
  EXPECT_EQ(yields_until_found(contention, kSlice / 100, kRanksOfACore * kSlice),
            CoreContention::kSlices);
}

// Ranks take turns of 10 us in short calls, and a program has its fair share of the core.
TEST(LongYields, AreThoseOfAProgramAmongBusyRanks) {
  constexpr std::int64_t kTurn = 10'000;
  CoreContention contention;
  contention.expect_turns_of(kRanksOfACore);
  std::int64_t now = base::kSecond, thread_time = 0;
  int slices = 0;
  for (; !contention.is_there(now) && slices < 100; ++slices) {
    for (std::int64_t used = 0; used < kSlice; used += kTurn) {
      now += kTurn;
      thread_time += kTurn;
      yield(contention, now, now + (kRanksOfACore - 1) * kTurn, thread_time);
      now += (kRanksOfACore - 1) * kTurn;
    }
    yield(contention, now, now + 3 * kRanksOfACore * kSlice, thread_time);
    now += 3 * kRanksOfACore * kSlice;
  }
  EXPECT_LE(slices, 2 * CoreContention::kSlices);
}

// It was away for long, asleep or computing, and the program is still there.
TEST(LongYields, CountNoWorkDuringAssumedContention) {
  CoreContention contention;
  contention.expect_turns_of(kRanksOfACore);
  std::int64_t now = base::kSecond, thread_time = 0;
  const auto lose = [&] {
    yield(contention, now, now + kRanksOfACore * kSlice, thread_time);
    now += kRanksOfACore * kSlice;
  };
  for (int i = 0; i < CoreContention::kSlices; ++i) lose();
  ASSERT_TRUE(contention.is_there(now));
  now += CoreContention::kHoldNs;
  thread_time += CoreContention::kHoldNs;
  lose();
  EXPECT_TRUE(contention.is_there(now)) << "one slice tells";
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
