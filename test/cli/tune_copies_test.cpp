// SPDX-License-Identifier: BSD-3-Clause
// The length from which on one copy is taken follows from measured times.
#include "tune/copies.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace unisono::tools::tune::tune_copies_test {
namespace {

constexpr std::int64_t kKiB = 1024;

// Times of two copies are 1000 ns, and these are the shares of one copy.
std::vector<CopyTimes> of(int ranks, const std::vector<std::pair<std::int64_t, double>>& shares) {
  std::vector<CopyTimes> times;
  for (const auto& [bytes, share] : shares) times.push_back({ranks, bytes, 1000 * share, 1000, 1});
  return times;
}

TEST(SingleCopyFrom, IsTheLeastLengthBeyondWhichOneCopyIsFaster) {
  const auto from =
      single_copy_from(of(2, {{64 * kKiB, 1.3}, {256 * kKiB, 0.8}, {kKiB * kKiB, 0.5}}));
  ASSERT_TRUE(from.has_value());
  EXPECT_EQ(from->bytes, 256 * kKiB);
  EXPECT_EQ(from->plus_minus, 96 * kKiB);
}

TEST(SingleCopyFrom, MayBeTheLeastMeasured) {
  const auto from = single_copy_from(of(2, {{kKiB * kKiB, 0.4}, {64 * kKiB, 0.4}}));
  ASSERT_TRUE(from.has_value());
  EXPECT_EQ(from->bytes, 64 * kKiB);
  EXPECT_EQ(from->plus_minus, 32 * kKiB);
}

TEST(SingleCopyFrom, IsNoneWhereTheLongestIsSlower) {
  EXPECT_FALSE(single_copy_from(of(2, {{64 * kKiB, 0.4}, {256 * kKiB, 0.4}, {kKiB * kKiB, 1.1}})));
  EXPECT_FALSE(single_copy_from({}));
}

TEST(SingleCopyFrom, DoesNotBeginBelowALengthThatIsSlower) {
  const auto from = single_copy_from(
      of(2, {{16 * kKiB, 0.5}, {64 * kKiB, 1.0}, {256 * kKiB, 0.5}, {kKiB * kKiB, 0.5}}));
  ASSERT_TRUE(from.has_value());
  EXPECT_EQ(from->bytes, 256 * kKiB);
}

TEST(SingleCopyFrom, TakesAClearGain) {
  EXPECT_FALSE(single_copy_from(of(2, {{kKiB * kKiB, 0.95}})));
  EXPECT_TRUE(single_copy_from(of(2, {{kKiB * kKiB, 0.85}})));
}

TEST(SingleCopyFrom, HasToBeFasterAtEachNumberOfRanks) {
  std::vector<CopyTimes> times = of(2, {{64 * kKiB, 0.5}, {kKiB * kKiB, 0.5}});
  for (const CopyTimes& each : of(8, {{64 * kKiB, 1.5}, {kKiB * kKiB, 0.7}})) times.push_back(each);
  const auto from = single_copy_from(times);
  ASSERT_TRUE(from.has_value());
  EXPECT_EQ(from->bytes, kKiB * kKiB);
}

}  // namespace
}  // namespace unisono::tools::tune::tune_copies_test
