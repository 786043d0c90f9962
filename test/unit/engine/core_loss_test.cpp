// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/core_loss.hpp"

#include <gtest/gtest.h>

namespace unisono::engine::test {
namespace {

constexpr std::int64_t kMs = base::kMillisecond;
constexpr std::int64_t kSlice = 2 * kMs;

TEST(CoreLoss, TurnsOfOtherRanksAreNone) {
  CoreLoss loss;
  for (std::int64_t now = 0; now < base::kSecond; now += kMs) {
    loss.saw(now - CoreLoss::kLateNs + 1, now);
    ASSERT_FALSE(loss.is_there(now));
  }
}

TEST(CoreLoss, ASliceNowAndThenIsNone) {
  CoreLoss loss;
  for (std::int64_t now = 0; now < 10 * base::kSecond; now += CoreLoss::kLeak * kSlice) {
    loss.saw(now - kSlice, now);
    ASSERT_FALSE(loss.is_there(now));
  }
}

TEST(CoreLoss, OneThatIsLongIsNone) {
  CoreLoss loss;
  loss.saw(0, base::kSecond);
  EXPECT_FALSE(loss.is_there(base::kSecond));
}

TEST(CoreLoss, SlicesInARowHoldForAWhile) {
  CoreLoss loss;
  loss.saw(0, kSlice);
  EXPECT_FALSE(loss.is_there(kSlice));
  const std::int64_t now = 2 * kSlice;
  loss.saw(now - kSlice, now);
  EXPECT_TRUE(loss.is_there(now));
  EXPECT_TRUE(loss.is_there(now + CoreLoss::kHoldNs - 1));
  EXPECT_FALSE(loss.is_there(now + CoreLoss::kHoldNs));
}

TEST(CoreLoss, WhatIsFoundAgainHoldsLonger) {
  CoreLoss loss;
  std::int64_t now = kSlice;
  loss.saw(0, now);
  loss.saw(0, now);
  std::int64_t hold_ns = CoreLoss::kHoldNs;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(loss.is_there(now + hold_ns - 1));
    EXPECT_FALSE(loss.is_there(now + hold_ns));
    now += hold_ns + kSlice;
    loss.saw(now - kSlice, now);  // one is enough
    hold_ns = std::min(2 * hold_ns, CoreLoss::kLongestHoldNs);
  }
  // Long afterwards it begins anew.
  now += 3 * CoreLoss::kLongestHoldNs;
  loss.saw(now - kSlice, now);
  EXPECT_FALSE(loss.is_there(now));
}

TEST(CoreLoss, ASliceAfterManyTurnsIsNotFoundAgain) {
  CoreLoss loss;
  loss.saw(0, kSlice);
  loss.saw(0, kSlice);
  std::int64_t now = kSlice + CoreLoss::kHoldNs;
  for (int i = 0; i < 100; ++i) {
    now += 2 * CoreLoss::kLeak * kSlice;
    loss.saw(now - kSlice, now);
    ASSERT_FALSE(loss.is_there(now)) << i;
  }
}

}  // namespace
}  // namespace unisono::engine::test
