// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace unisono::tools::statistics_test {
namespace {

TEST(Statistics, OfNothing) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.samples, 0u);
  EXPECT_EQ(summary.median, 0.0);
}

TEST(Statistics, OfOne) {
  const Summary summary = summarize({3.5});
  EXPECT_EQ(summary.samples, 1u);
  for (const double value :
       {summary.minimum, summary.median, summary.p99, summary.maximum, summary.mean}) {
    EXPECT_EQ(value, 3.5);
  }
}

TEST(Statistics, MedianOfAnEvenNumberLiesBetween) {
  EXPECT_EQ(summarize({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(summarize({9, 1, 5}).median, 5);
}

TEST(Statistics, PercentilesAreMeasuredValues) {
  for (const int n : {1, 2, 50, 99, 100, 101, 200, 1000}) {
    std::vector<double> sample(static_cast<std::size_t>(n));
    std::iota(sample.rbegin(), sample.rend(), 1.0);
    const Summary summary = summarize(sample);
    EXPECT_EQ(summary.p99, (99 * n + 99) / 100) << n;
    EXPECT_EQ(summary.minimum, 1) << n;
    EXPECT_EQ(summary.maximum, n) << n;
    EXPECT_EQ(summary.mean, (n + 1) / 2.0) << n;
  }
}

}  // namespace
}  // namespace unisono::tools::statistics_test
