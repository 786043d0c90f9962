// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/overlap.hpp"

#include <gtest/gtest.h>

namespace unisono::tools::bench::overlap_test {
namespace {

TEST(Overlap, IsTheShareOfCommunicationThatIsHidden) {
  EXPECT_DOUBLE_EQ(overlap_percent(100, 100, 50), 100);
  EXPECT_DOUBLE_EQ(overlap_percent(125, 100, 50), 50);
  EXPECT_DOUBLE_EQ(overlap_percent(150, 100, 50), 0);
  EXPECT_DOUBLE_EQ(overlap_percent(0, 0, 0), 0);
}

TEST(Overlap, IsToldAsMeasuredAlsoBelowNothingAndAboveAll) {
  EXPECT_DOUBLE_EQ(overlap_percent(200, 100, 50), -100);
  EXPECT_DOUBLE_EQ(overlap_percent(90, 100, 50), 120);
}

}  // namespace
}  // namespace unisono::tools::bench::overlap_test
