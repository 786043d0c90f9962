// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/arrivals.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.hpp"

namespace unisono::reliable::arrivals_test {
namespace {

using Taken = Arrivals::Taken;

TEST(Arrivals, InOrderNothingIsMissing) {
  Arrivals arrivals(1);
  for (std::uint64_t number = 1; number <= 3 * kWindow; ++number) {
    EXPECT_EQ(arrivals.take(number), Taken::fresh);
    EXPECT_FALSE(arrivals.has_gap());
    EXPECT_EQ(arrivals.missing(), number + 1);
  }
}

TEST(Arrivals, AGapIsSeenAndFilled) {
  Arrivals arrivals(1);
  EXPECT_EQ(arrivals.take(1), Taken::fresh);
  EXPECT_EQ(arrivals.take(4), Taken::fresh);
  EXPECT_TRUE(arrivals.has_gap());
  EXPECT_EQ(arrivals.missing(), 2U);
  EXPECT_EQ(arrivals.end(), 5U);
  // 2 and 3 are missing, 4 is there, and nobody knows of 5 and more.
  EXPECT_EQ(arrivals.mask(2), ~std::uint64_t{0b100});
  EXPECT_FALSE(arrivals.has_all(2, 4));
  EXPECT_TRUE(arrivals.has_all(4, 4));
  EXPECT_EQ(arrivals.take(3), Taken::fresh);
  EXPECT_EQ(arrivals.take(2), Taken::fresh);
  EXPECT_FALSE(arrivals.has_gap());
  EXPECT_TRUE(arrivals.has_all(1, 4));
  EXPECT_EQ(arrivals.missing(), 5U);
}

TEST(Arrivals, WhatHasComeIsTakenOnce) {
  Arrivals arrivals(1);
  EXPECT_EQ(arrivals.take(2), Taken::fresh);
  EXPECT_EQ(arrivals.take(2), Taken::seen);
  EXPECT_EQ(arrivals.take(1), Taken::fresh);
  EXPECT_EQ(arrivals.take(1), Taken::seen);
  EXPECT_EQ(arrivals.take(0), Taken::seen);
}

TEST(Arrivals, TheWindowHasAnEnd) {
  Arrivals arrivals(1);
  EXPECT_EQ(arrivals.take(kWindow), Taken::fresh);
  EXPECT_EQ(arrivals.take(kWindow + 1), Taken::beyond);
  EXPECT_EQ(arrivals.take(1), Taken::fresh);
  EXPECT_EQ(arrivals.take(kWindow + 1), Taken::fresh);
}

TEST(Arrivals, WhatIsExpectedIsMissing) {
  Arrivals arrivals(1);
  arrivals.expect_until(4);
  EXPECT_TRUE(arrivals.has_gap());
  EXPECT_EQ(arrivals.missing(), 1U);
  arrivals.expect_until(2);  // less than is known
  EXPECT_EQ(arrivals.end(), 4U);
  arrivals.expect_until(kWindow + 2);  // more than there can be
  EXPECT_EQ(arrivals.end(), 4U);
  for (std::uint64_t number = 1; number < 4; ++number) arrivals.take(number);
  EXPECT_FALSE(arrivals.has_gap());
}

// Against a set, in random order, across the wrap of the numbers.
TEST(Arrivals, AgreesWithASet) {
  for (const std::uint64_t first : {std::uint64_t{1}, ~std::uint64_t{0} - 700}) {
    base::Prng prng(first);
    Arrivals arrivals(first);
    std::set<std::uint64_t> model;  // steps from `first`
    std::uint64_t missing = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t step = missing + prng.below(100) - std::min<std::uint64_t>(missing, 20);
      const bool fresh = model.insert(step).second;
      ASSERT_EQ(arrivals.take(first + step), fresh ? Taken::fresh : Taken::seen);
      while (model.contains(missing)) ++missing;
      ASSERT_EQ(arrivals.missing(), first + missing);
      ASSERT_EQ(arrivals.end(), first + *model.rbegin() + 1);
      const std::uint64_t mask = arrivals.mask(arrivals.missing());
      for (std::uint64_t bit = 0; bit < kMaskNumbers; ++bit) {
        ASSERT_EQ((mask >> bit & 1) == 0, model.contains(missing + bit));
      }
    }
  }
}

}  // namespace
}  // namespace unisono::reliable::arrivals_test
