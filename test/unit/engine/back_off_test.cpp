// SPDX-License-Identifier: BSD-3-Clause
// How many questions the root of a barrier asks while a rank is late: as many as delays double up
// to the longest one, and then one for each longest delay.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

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
  delay.restart();
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
  EXPECT_EQ(questions_in(3 * base::kSecond, 2 * base::kSecond), 1);
}

TEST(BackOff, HasBoundsWhateverTheMachineFileSays) {
  const auto bounds_of = [](double first_ns, double most_ns) {
    const auto bounds = BackOff::Bounds::of(first_ns, most_ns);
    return std::pair(bounds.first_ns, bounds.most_ns);
  };
  constexpr std::int64_t kLeast = 100 * base::kMicrosecond;
  EXPECT_EQ(bounds_of(1e6, 64e6), std::pair(kBounds.first_ns, kBounds.most_ns));
  EXPECT_EQ(bounds_of(0, 0), std::pair(kLeast, kLeast)) << "not at each look";
  EXPECT_EQ(bounds_of(1e6, 1000), std::pair(base::kMillisecond, base::kMillisecond));
  EXPECT_EQ(bounds_of(1e24, 1e24), std::pair(base::kSecond, base::kSecond));
}

TEST(BackOff, BeginsAgainWithTheShortestDelay) {
  BackOff delay(kBounds);
  delay.restart();
  for (std::int64_t now_ns = 0; now_ns < base::kSecond; now_ns += 1000) delay.ends(now_ns);
  delay.restart();
  EXPECT_GT(delay.due_ns(), 1000 * base::kSecond) << "nobody has looked";
  EXPECT_FALSE(delay.ends(2 * base::kSecond)) << "the first look begins it";
  EXPECT_EQ(delay.due_ns(), 2 * base::kSecond + kBounds.first_ns);
}

}  // namespace
}  // namespace unisono::engine::test::back_off_test
