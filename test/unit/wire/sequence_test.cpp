// SPDX-License-Identifier: BSD-3-Clause
// Serial arithmetic and the replay window, everywhere on the circle and above all at its wrap.
#include "wire/sequence.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

#include "base/prng.hpp"

namespace unisono::wire::sequence_test {
namespace {

template <class Number>
class Sequence : public testing::Test {};
using Numbers = testing::Types<std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Sequence, Numbers);

TYPED_TEST(Sequence, BeforeIsTheShorterWayRoundTheCircle) {
  using Number = TypeParam;
  constexpr Number kMost = std::numeric_limits<Number>::max();
  constexpr auto kHalf = static_cast<Number>(kMost / 2);
  for (const Number start : {Number{0}, Number{1}, kHalf, static_cast<Number>(kMost - 1), kMost}) {
    EXPECT_FALSE(is_before(start, start));
    for (const Number step : {Number{1}, Number{2}, Number{1000}, kHalf}) {
      const auto later = static_cast<Number>(start + step);
      EXPECT_TRUE(is_before(start, later)) << start << " " << step;
      EXPECT_FALSE(is_before(later, start)) << start << " " << step;
      EXPECT_EQ(distance(start, later), static_cast<std::make_signed_t<Number>>(step));
      EXPECT_EQ(distance(later, start), -static_cast<std::make_signed_t<Number>>(step));
    }
  }
}

TYPED_TEST(Sequence, TheFirstNumberMayBeAny) {
  ReplayWindow<TypeParam, 64> window;
  EXPECT_FALSE(window.begun());
  const TypeParam start = std::numeric_limits<TypeParam>::max();
  EXPECT_EQ(window.take(start), Freshness::fresh);
  EXPECT_TRUE(window.begun());
  EXPECT_EQ(window.highest(), start);
  EXPECT_EQ(window.take(start), Freshness::seen);
  EXPECT_EQ(window.take(0), Freshness::fresh);  // the number after it
  EXPECT_EQ(window.highest(), 0U);
}

TYPED_TEST(Sequence, EdgesOfTheWindowAcrossTheWrap) {
  using Number = TypeParam;
  for (Number highest = static_cast<Number>(-130); highest != 130; ++highest) {
    ReplayWindow<Number, 64> window;
    EXPECT_EQ(window.take(highest), Freshness::fresh);
    EXPECT_EQ(window.look(static_cast<Number>(highest - 63)), Freshness::fresh);
    EXPECT_EQ(window.look(static_cast<Number>(highest - 64)), Freshness::old);
    EXPECT_EQ(window.take(static_cast<Number>(highest - 63)), Freshness::fresh);
    EXPECT_EQ(window.take(static_cast<Number>(highest - 63)), Freshness::seen);
    EXPECT_EQ(window.highest(), highest);
    // One further: the lowest leaves the window, and the skipped number has not come.
    EXPECT_EQ(window.take(static_cast<Number>(highest + 2)), Freshness::fresh);
    EXPECT_EQ(window.look(static_cast<Number>(highest - 63)), Freshness::old);
    EXPECT_EQ(window.take(static_cast<Number>(highest + 1)), Freshness::fresh);
    EXPECT_EQ(window.look(highest), Freshness::seen);
    // A jump by more than the window forgets all of it.
    EXPECT_EQ(window.take(static_cast<Number>(highest + 2 + 64)), Freshness::fresh);
    EXPECT_EQ(window.look(static_cast<Number>(highest + 2)), Freshness::old);
    EXPECT_EQ(window.look(static_cast<Number>(highest + 3)), Freshness::fresh);
  }
}

// Against a set, with the wrap in the middle of the walk.
TYPED_TEST(Sequence, ARandomWalkAgreesWithASet) {
  using Number = TypeParam;
  constexpr int kNumbers = 256;
  base::Prng prng(17);
  ReplayWindow<Number, kNumbers> window;
  std::int64_t highest = -1;
  std::set<std::int64_t> seen;
  const auto origin = static_cast<Number>(-2000);
  for (int turn = 0; turn < 20'000; ++turn) {
    const auto reach = static_cast<std::int64_t>(prng.below(40) == 0 ? 900 : 8);
    const std::int64_t number = highest - 300 + static_cast<std::int64_t>(prng.below(301)) +
                                static_cast<std::int64_t>(prng.below(2)) * reach;
    if (number < 0) continue;
    Freshness expected = Freshness::fresh;
    if (highest >= 0 && number <= highest - kNumbers) {
      expected = Freshness::old;
    } else if (seen.count(number) != 0) {
      expected = Freshness::seen;
    }
    const auto on_circle = static_cast<Number>(origin + static_cast<Number>(number));
    ASSERT_EQ(window.look(on_circle), expected) << "turn " << turn << ", number " << number;
    ASSERT_EQ(window.take(on_circle), expected) << "turn " << turn << ", number " << number;
    seen.insert(number);
    highest = std::max(highest, number);
  }
  EXPECT_GT(highest, 4000);  // so the wrap was passed
}

}  // namespace
}  // namespace unisono::wire::sequence_test
