// SPDX-License-Identifier: BSD-3-Clause
// How many questions the root of a barrier asks while a rank is late: as many as delays double up
// to the longest one, and then one for each longest delay.
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "engine/nic/nic_patience.hpp"

namespace unisono::engine::test::back_off_test {
namespace {

using nic_patience::BackOff;

constexpr BackOff::Bounds kBounds = {base::kMillisecond, 64 * base::kMillisecond};

int questions_in(std::int64_t wait_ns, std::int64_t step_ns) {
  BackOff delay(kBounds);
  std::int64_t now_ns = 5 * base::kSecond;
  const std::int64_t end_ns = now_ns + wait_ns;
  delay.restart(now_ns);
  int questions = 0;
  for (; now_ns < end_ns; now_ns += step_ns) questions += delay.ends(now_ns) ? 1 : 0;
  return questions;
}

TEST(BackOff, QuestionsGrowWithTheLogarithmOfTheWait) {
  EXPECT_EQ(questions_in(base::kMillisecond / 2, 1000), 0);
  for (int doublings = 1; doublings <= 6; ++doublings) {
    const std::int64_t wait_ns = ((std::int64_t{1} << doublings) - 1) * base::kMillisecond;
    EXPECT_LE(questions_in(wait_ns + 2 * base::kMicrosecond * doublings, 1000), doublings);
    EXPECT_GE(questions_in(2 * wait_ns, 1000), doublings);
  }
}

TEST(BackOff, ThenByOneForEachLongestDelay) {
  const int before = questions_in(base::kSecond, 10'000);
  const int after = questions_in(base::kSecond + 10 * kBounds.most_ns, 10'000);
  EXPECT_LE(after - before, 10);
  EXPECT_GE(after - before, 9);
}

TEST(BackOff, ARankThatLooksLateAsksOnce) {
  EXPECT_EQ(questions_in(2 * base::kSecond, base::kSecond), 1);
}

TEST(BackOff, BeginsAgainWithTheShortestDelay) {
  BackOff delay(kBounds);
  delay.restart(0);
  for (std::int64_t now_ns = 0; now_ns < base::kSecond; now_ns += 1000) delay.ends(now_ns);
  delay.restart(base::kSecond);
  EXPECT_EQ(delay.due_ns(), base::kSecond + kBounds.first_ns);
}

}  // namespace
}  // namespace unisono::engine::test::back_off_test
