// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/histogram.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "bench/study/histogram_picture.hpp"

namespace unisono::tools::bench::histogram_test {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(Histogram, CountsFromTheSmallestToTheLargest) {
  const std::vector<double> sample{1, 2, 2.5, 3, 5};
  const Histogram histogram = make_histogram(sample, 4);
  EXPECT_DOUBLE_EQ(histogram.from, 1);
  EXPECT_DOUBLE_EQ(histogram.bin, 1);
  EXPECT_EQ(histogram.counts, (Counts{1, 2, 1, 1}));
}

TEST(Histogram, OfEqualValuesHasOneBinFull) {
  const std::vector<double> sample{2, 2, 2};
  EXPECT_EQ(make_histogram(sample, 3).counts, (Counts{3, 0, 0}));
  EXPECT_EQ(make_histogram({}, 2).counts, (Counts{0, 0}));
}

TEST(Spread, IsMeanAndDeviationOfTheSample) {
  const std::vector<double> sample{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(spread_of(sample).mean, 5);
  EXPECT_NEAR(spread_of(sample).deviation, 2.138, 0.001);
  EXPECT_DOUBLE_EQ(spread_of(std::vector<double>{3}).deviation, 0);
}

TEST(Trimming, LeavesOutTheHighest) {
  std::vector<double> sample;
  for (int i = 200; i > 0; --i) sample.push_back(i);
  const std::vector<double> kept = without_highest(sample, 1);
  ASSERT_EQ(kept.size(), 198u);
  EXPECT_DOUBLE_EQ(kept.front(), 1);
  EXPECT_DOUBLE_EQ(kept.back(), 198);
  EXPECT_EQ(without_highest({1, 2}, 1).size(), 2u);
}

TEST(HistogramPicture, HasABarForEachBinAndThePanelsTitle) {
  const std::string svg = histogram_picture({{"barrier", {0, 1, {1, 4}}}, {"scan", {0, 1, {0}}}});
  EXPECT_NE(svg.find(">barrier</text>"), std::string::npos);
  EXPECT_NE(svg.find(">scan</text>"), std::string::npos);
  EXPECT_NE(svg.find("height='400'"), std::string::npos);
}

}  // namespace
}  // namespace unisono::tools::bench::histogram_test
