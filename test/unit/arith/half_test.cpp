// SPDX-License-Identifier: BSD-3-Clause
// The conversions of the 16-bit formats against their definition: the value of a pattern by ldexp,
// rounding by a search for the nearest of all values. All 65536 patterns, every middle between
// neighbours and the float32 just beside it.
#include "arith/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace unisono::arith::half_test {
namespace {

constexpr int kPatterns = 65536;

double float16_value(int pattern) {
  const int exponent = (pattern >> 10) & 31;
  const int fraction = pattern & 1023;
  const double sign = (pattern & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The nearest float16 of a positive number: 0 to infinity are the patterns 0 to 0x7C00, in order;
// for rounding, infinity counts as 2^16.
std::uint16_t nearest_float16(double value) {
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (int pattern = 0; pattern < 0x7C00; ++pattern) all.push_back(float16_value(pattern));
    all.push_back(65536.0);
    return all;
  }();
  const auto above = std::lower_bound(values.begin(), values.end(), value);
  if (above == values.end()) return 0x7C00;
  const auto index = static_cast<std::uint16_t>(above - values.begin());
  if (index == 0) return 0;
  const double up = *above - value;
  const double down = value - values[index - 1u];
  const bool to_lower = down < up || (down == up && index % 2 == 1);
  return static_cast<std::uint16_t>(to_lower ? index - 1 : index);
}

void expect_narrowed(float value) {
  const std::uint16_t expected = nearest_float16(value);
  ASSERT_EQ(to_float16(value).bits, expected) << value;
  ASSERT_EQ(to_float16(-value).bits, expected | 0x8000) << -value;
}

TEST(Half, EveryFloat16HasItsValue) {
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const float actual = to_float32(Float16{static_cast<std::uint16_t>(pattern)});
    const double expected = float16_value(pattern);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << pattern;
    } else {
      ASSERT_EQ(static_cast<double>(actual), expected) << pattern;
      ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << pattern;
    }
  }
}

TEST(Half, EveryFloat16SurvivesTheRoundTrip) {
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const Float16 half{static_cast<std::uint16_t>(pattern)};
    const Float16 back = to_float16(to_float32(half));
    if ((pattern & 0x7FFF) > 0x7C00) {
      ASSERT_GT(back.bits & 0x7FFF, 0x7C00) << pattern;
    } else {
      ASSERT_EQ(back.bits, half.bits);
    }
  }
}

TEST(Half, Float16RoundsToNearestEvenAtEveryMiddle) {
  for (int pattern = 0; pattern < 0x7C00; ++pattern) {
    const double next = pattern == 0x7BFF ? 65536.0 : float16_value(pattern + 1);
    const auto middle = static_cast<float>((float16_value(pattern) + next) / 2);
    expect_narrowed(middle);
    expect_narrowed(std::nextafter(middle, 0.0f));
    expect_narrowed(std::nextafter(middle, std::numeric_limits<float>::max()));
  }
}

TEST(Half, Float16OfAnyFloat32) {
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0x7FFFFFFFu);
    if (!std::isnan(value)) expect_narrowed(value);
  }
  expect_narrowed(std::numeric_limits<float>::infinity());
  expect_narrowed(std::numeric_limits<float>::denorm_min());
  for (std::uint32_t bits : {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0xFFFFFFFFu}) {
    EXPECT_GT(to_float16(std::bit_cast<float>(bits)).bits & 0x7FFF, 0x7C00) << bits;
  }
}

TEST(Half, EveryBFloat16IsTheUpperHalfOfItsValue) {
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const BFloat16 half{static_cast<std::uint16_t>(pattern)};
    const float value = to_float32(half);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), static_cast<std::uint32_t>(pattern) << 16);
    if ((pattern & 0x7FFF) > 0x7F80) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_GT(to_bfloat16(value).bits & 0x7FFF, 0x7F80) << pattern;
    } else {
      ASSERT_EQ(to_bfloat16(value).bits, pattern);
    }
  }
}

TEST(Half, BFloat16RoundsToNearestEvenAtEveryMiddle) {
  for (std::uint32_t pattern = 0; pattern < 0x7F80; ++pattern) {
    const std::uint32_t middle = pattern << 16 | 0x8000u;
    const std::uint32_t even = pattern + pattern % 2;
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const auto narrowed = [sign](std::uint32_t bits) {
        return to_bfloat16(std::bit_cast<float>(bits | sign << 16)).bits;
      };
      ASSERT_EQ(narrowed(middle), even | sign) << pattern;
      ASSERT_EQ(narrowed(middle - 1), pattern | sign) << pattern;
      ASSERT_EQ(narrowed(middle + 1), (pattern + 1) | sign) << pattern;
    }
  }
}

TEST(Half, BFloat16KeepsNaNWhoseUpperHalfIsZero) {
  EXPECT_GT(to_bfloat16(std::bit_cast<float>(0x7F800001u)).bits & 0x7FFF, 0x7F80);
  EXPECT_GT(to_bfloat16(std::bit_cast<float>(0xFFFFFFFFu)).bits & 0x7FFF, 0x7F80);
}

}  // namespace
}  // namespace unisono::arith::half_test
