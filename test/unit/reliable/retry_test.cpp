// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/retry.hpp"

#include <gtest/gtest.h>

#include <set>

namespace unisono::reliable::retry_test {
namespace {

constexpr RetryDelays kDelays{.first_ns = 1000, .most_ns = 8000};

TEST(RetryTimer, DelaysGrowUpToALimit) {
  base::Prng prng(1);
  RetryTimer timer;
  EXPECT_FALSE(timer.runs());
  EXPECT_FALSE(timer.is_due(1'000'000));
  std::int64_t now = 5'000'000;
  timer.start(now, kDelays, prng);
  for (const std::int64_t least : {1000, 2000, 4000, 8000, 8000, 8000}) {
    EXPECT_TRUE(timer.runs());
    EXPECT_FALSE(timer.is_due(now + least - 1));
    EXPECT_TRUE(timer.is_due(now + 2 * least));
    now = timer.deadline_ns();
    timer.again(now, kDelays, prng);
  }
}

TEST(RetryTimer, ARunningOneIsNotPutOff) {
  base::Prng prng(1);
  RetryTimer timer;
  timer.start(0, kDelays, prng);
  const std::int64_t deadline = timer.deadline_ns();
  timer.start(900, kDelays, prng);
  EXPECT_EQ(timer.deadline_ns(), deadline);
  timer.stop();
  timer.start(900, kDelays, prng);
  EXPECT_GE(timer.deadline_ns(), 1900);
}

TEST(RetryTimer, ManyDoNotAskAtOnce) {
  std::set<std::int64_t> deadlines;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Prng prng(seed);
    RetryTimer timer;
    timer.start(0, {.first_ns = 1'000'000, .most_ns = 1'000'000}, prng);
    EXPECT_GE(timer.deadline_ns(), 1'000'000);
    EXPECT_LT(timer.deadline_ns(), 2'000'000);
    deadlines.insert(timer.deadline_ns());
  }
  EXPECT_GT(deadlines.size(), 95U);
}

}  // namespace
}  // namespace unisono::reliable::retry_test
