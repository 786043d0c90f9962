// SPDX-License-Identifier: BSD-3-Clause
// The scalar reference against definitions that are calculated in another way: integers in 128
// bits, float32 in float64 (wide enough that rounding twice is rounding once), order by bit
// patterns; and the rules of docs/reference/arithmetic.md one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "arith/kernel.hpp"
#include "arith/scalar.hpp"
#include "element_data.hpp"

namespace unisono::arith::test::reference_test {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <class T>
T reduce(Operator op, Type type, T left, T right) {
  T result;
  find_reference_kernel(op, type)(&result, &left, &right, 1, nullptr);
  return result;
}

// Calls check(left, right, result) for every element of the operands of edge_pairs.
template <class T, class Check>
void for_results(Operator op, Type type, Check check) {
  const Operands operands = edge_pairs(type);
  Bytes result(operands.left.size());
  find_reference_kernel(op, type)(result.data(), operands.left.data(), operands.right.data(),
                                  static_cast<std::int64_t>(operands.count), nullptr);
  for (std::size_t i = 0; i < operands.count; ++i) {
    check(element<T>(operands.left, i), element<T>(operands.right, i), element<T>(result, i));
    if (testing::Test::HasFatalFailure()) return;
  }
}

template <class T>
void expect_integers(Type type) {
  using Wide = unsigned __int128;
  const auto expect = [type](Operator op, auto definition) {
    SCOPED_TRACE(case_name({op, type}));
    for_results<T>(op, type, [&](T a, T b, T result) {
      ASSERT_EQ(result, static_cast<T>(definition(a, b))) << +a << " " << +b;
    });
  };
  expect(Operator::sum, [](T a, T b) { return static_cast<Wide>(a) + static_cast<Wide>(b); });
  expect(Operator::prod, [](T a, T b) { return static_cast<Wide>(a) * static_cast<Wide>(b); });
  expect(Operator::min, [](T a, T b) { return std::min(a, b); });
  expect(Operator::max, [](T a, T b) { return std::max(a, b); });
  expect(Operator::logical_and, [](T a, T b) { return a && b; });
  expect(Operator::logical_or, [](T a, T b) { return a || b; });
  expect(Operator::logical_xor, [](T a, T b) { return !a != !b; });
  expect(Operator::bitwise_and,
         [](T a, T b) { return static_cast<Wide>(a) & static_cast<Wide>(b); });
  expect(Operator::bitwise_or,
         [](T a, T b) { return static_cast<Wide>(a) | static_cast<Wide>(b); });
  expect(Operator::bitwise_xor,
         [](T a, T b) { return static_cast<Wide>(a) ^ static_cast<Wide>(b); });
}

template <class T>
auto bits(T value) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  return std::bit_cast<Bits>(value);
}

// Calculates in Wide and rounds back; NaN as a class, everything else bit by bit.
template <class T, class Wide, class Widen, class Narrow>
void expect_real(Type type, Widen widen, Narrow narrow_back) {
  const auto expect = [&](Operator op, auto definition) {
    SCOPED_TRACE(case_name({op, type}));
    for_results<T>(op, type, [&](T a, T b, T result) {
      const Wide exact = definition(widen(a), widen(b));
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(widen(result))) << widen(a) << " " << widen(b);
        return;
      }
      const T expected = narrow_back(exact);
      ASSERT_EQ(bits(result), bits(expected))
          << widen(a) << " " << widen(b) << " gave " << widen(result) << " not " << exact;
    });
  };
  // -0 below +0 by the sign; a NaN makes a NaN.
  const auto below = [](Wide a, Wide b) {
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
  };
  expect(Operator::sum, [](Wide a, Wide b) { return a + b; });
  expect(Operator::prod, [](Wide a, Wide b) { return a * b; });
  expect(Operator::min, [&](Wide a, Wide b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Wide>::quiet_NaN();
    return below(b, a) ? b : a;
  });
  expect(Operator::max, [&](Wide a, Wide b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Wide>::quiet_NaN();
    return below(a, b) ? b : a;
  });
}

TEST(Reference, Integers) {
  expect_integers<std::int8_t>(Type::int8);
  expect_integers<std::int16_t>(Type::int16);
  expect_integers<std::int32_t>(Type::int32);
  expect_integers<std::int64_t>(Type::int64);
  expect_integers<std::uint8_t>(Type::uint8);
  expect_integers<std::uint16_t>(Type::uint16);
  expect_integers<std::uint32_t>(Type::uint32);
  expect_integers<std::uint64_t>(Type::uint64);
}

TEST(Reference, BytesAreOnlyBits) {
  using Byte = std::uint8_t;
  for_results<Byte>(Operator::bitwise_and, Type::byte,
                    [](Byte a, Byte b, Byte r) { ASSERT_EQ(r, a & b); });
  for_results<Byte>(Operator::bitwise_or, Type::byte,
                    [](Byte a, Byte b, Byte r) { ASSERT_EQ(r, a | b); });
  for_results<Byte>(Operator::bitwise_xor, Type::byte,
                    [](Byte a, Byte b, Byte r) { ASSERT_EQ(r, a ^ b); });
}

TEST(Reference, IntegerOverflowWraps) {
  EXPECT_EQ(reduce<std::int32_t>(Operator::sum, Type::int32, 0x7FFFFFFF, 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(reduce<std::uint16_t>(Operator::prod, Type::uint16, 0xFFFF, 0xFFFF), 1);
  EXPECT_EQ(reduce<std::int8_t>(Operator::prod, Type::int8, -128, -1), -128);
  EXPECT_EQ(reduce<std::int64_t>(Operator::prod, Type::int64,
                                 std::numeric_limits<std::int64_t>::min(), -1),
            std::numeric_limits<std::int64_t>::min());
}

TEST(Reference, Float32) {
  expect_real<float, double>(
      Type::float32, [](float v) { return static_cast<double>(v); },
      [](double v) { return static_cast<float>(v); });
}

TEST(Reference, Float16AndBFloat16) {
  expect_real<Float16, float>(
      Type::float16, [](Float16 v) { return to_float32(v); },
      [](float v) { return to_float16(v); });
  expect_real<BFloat16, float>(
      Type::bfloat16, [](BFloat16 v) { return to_float32(v); },
      [](float v) { return to_bfloat16(v); });
}

TEST(Reference, Float64) {
  EXPECT_EQ(reduce(Operator::sum, Type::float64, 0.1, 0.2), 0x1.3333333333334p-2);
  EXPECT_EQ(reduce(Operator::sum, Type::float64, 1.0, 0x1p-53), 1.0);
  EXPECT_EQ(reduce(Operator::sum, Type::float64, 0x1.0000000000001p0, 0x1p-53),
            0x1.0000000000002p0);
  EXPECT_EQ(reduce(Operator::prod, Type::float64, 0x1p-1074, 0.5), 0.0);
  EXPECT_EQ(reduce(Operator::prod, Type::float64, 0x3p-1074, 0.5), 0x2p-1074);
  EXPECT_EQ(reduce(Operator::sum, Type::float64, 0x1.fffffffffffffp1023, 0x1p970),
            kInfinity<double>);
  EXPECT_TRUE(
      std::isnan(reduce(Operator::sum, Type::float64, kInfinity<double>, -kInfinity<double>)));
  EXPECT_TRUE(std::isnan(reduce(Operator::prod, Type::float64, kInfinity<double>, 0.0)));
}

template <class T>
void expect_minimum_rules(Type type) {
  const T zero = 0;
  EXPECT_TRUE(std::signbit(reduce(Operator::min, type, -zero, zero)));
  EXPECT_TRUE(std::signbit(reduce(Operator::min, type, zero, -zero)));
  EXPECT_FALSE(std::signbit(reduce(Operator::max, type, -zero, zero)));
  EXPECT_FALSE(std::signbit(reduce(Operator::max, type, zero, -zero)));
  EXPECT_TRUE(std::signbit(reduce(Operator::max, type, -zero, -zero)));
  for (const Operator op : {Operator::min, Operator::max, Operator::sum, Operator::prod}) {
    for (const T other : {zero, T{1}, kInfinity<T>, -kInfinity<T>, kNaN<T>}) {
      EXPECT_TRUE(std::isnan(reduce(op, type, kNaN<T>, other))) << operator_name(op) << other;
      EXPECT_TRUE(std::isnan(reduce(op, type, other, kNaN<T>))) << operator_name(op) << other;
    }
  }
  EXPECT_EQ(reduce(Operator::min, type, -kInfinity<T>, T{1}), -kInfinity<T>);
  EXPECT_EQ(reduce(Operator::max, type, T{1}, kInfinity<T>), kInfinity<T>);
}

TEST(Reference, MinimumAndMaximumOfIeee754) {
  expect_minimum_rules<float>(Type::float32);
  expect_minimum_rules<double>(Type::float64);
}

template <class T>
void expect_complex_rules(Type type) {
  using Number = Complex<T>;
  const Number sum = reduce<Number>(Operator::sum, type, {1, -2}, {T{0.5}, 4});
  EXPECT_EQ(sum.re, T{1.5});
  EXPECT_EQ(sum.im, T{2});
  const Number product = reduce<Number>(Operator::prod, type, {2, 3}, {5, -7});
  EXPECT_EQ(product.re, T{31});
  EXPECT_EQ(product.im, T{1});
  // x*x needs twice the bits: a fused multiply-add would leave the rounding error behind.
  const T x = 1 + std::numeric_limits<T>::epsilon();
  const Number square = reduce<Number>(Operator::prod, type, {x, x}, {x, x});
  EXPECT_EQ(square.re, T{0});
  const Number mixed = reduce<Number>(Operator::prod, type, {x, x}, {-x, x});
  EXPECT_EQ(mixed.im, T{0});
  // No repair of infinities as in Annex G of C: the formula decides.
  const Number infinite = reduce<Number>(Operator::prod, type, {kInfinity<T>, 0}, {1, 0});
  EXPECT_TRUE(std::isnan(infinite.im));
}

TEST(Reference, ComplexProductRoundsEachProduct) {
  expect_complex_rules<float>(Type::complex64);
  expect_complex_rules<double>(Type::complex128);
}

template <class T>
struct Located {
  Operator op;
  Pair<T> left;
  Pair<T> right;
  bool takes_right;
};

template <class T>
void expect_located(Type type, const Located<T>& c) {
  // The padding differs, to check that it comes with the chosen operand.
  unsigned char left[sizeof(Pair<T>)];
  unsigned char right[sizeof(Pair<T>)];
  unsigned char result[sizeof(Pair<T>)];
  const auto fill = [](unsigned char* to, unsigned char padding, const Pair<T>& pair) {
    std::memset(to, padding, sizeof(Pair<T>));
    std::memcpy(to + offsetof(Pair<T>, value), &pair.value, sizeof(T));
    std::memcpy(to + offsetof(Pair<T>, index), &pair.index, sizeof(std::int32_t));
  };
  fill(left, 0x11, c.left);
  fill(right, 0x22, c.right);
  find_reference_kernel(c.op, type)(result, left, right, 1, nullptr);
  EXPECT_EQ(std::memcmp(result, c.takes_right ? right : left, sizeof result), 0)
      << operator_name(c.op) << " (" << c.left.value << ", " << c.left.index << ") ("
      << c.right.value << ", " << c.right.index << ")";
}

template <class T>
std::vector<Located<T>> located_numbers() {
  return {
      {Operator::minloc, {1, 5}, {2, 3}, false},  {Operator::minloc, {2, 5}, {1, 9}, true},
      {Operator::maxloc, {1, 5}, {2, 9}, true},   {Operator::maxloc, {2, 5}, {1, 3}, false},
      {Operator::minloc, {4, 5}, {4, 3}, true},   {Operator::minloc, {4, 3}, {4, 5}, false},
      {Operator::maxloc, {4, 5}, {4, 3}, true},   {Operator::maxloc, {4, 3}, {4, 5}, false},
      {Operator::minloc, {4, 3}, {4, 3}, false},  {Operator::maxloc, {4, 3}, {4, 3}, false},
      {Operator::minloc, {4, 0}, {4, -1}, true},  {Operator::maxloc, {4, 0}, {4, -1}, true},
      {Operator::minloc, {-1, 0}, {1, 0}, false}, {Operator::maxloc, {-1, 0}, {1, 0}, true},
  };
}

template <class T>
std::vector<Located<T>> located_specials() {
  const T nan = kNaN<T>;
  const T infinity = kInfinity<T>;
  return {
      {Operator::minloc, {nan, 9}, {-infinity, 1}, false},
      {Operator::minloc, {-infinity, 1}, {nan, 9}, true},
      {Operator::maxloc, {nan, 9}, {infinity, 1}, false},
      {Operator::maxloc, {infinity, 1}, {nan, 9}, true},
      {Operator::minloc, {nan, 2}, {-nan, 1}, true},
      {Operator::maxloc, {nan, 2}, {-nan, 1}, true},
      {Operator::minloc, {nan, 1}, {-nan, 2}, false},
      {Operator::maxloc, {-nan, 1}, {nan, 1}, false},
      {Operator::minloc, {T{0}, 1}, {-T{0}, 2}, false},
      {Operator::minloc, {T{0}, 2}, {-T{0}, 1}, true},
      {Operator::maxloc, {-T{0}, 1}, {T{0}, 2}, false},
      {Operator::maxloc, {-T{0}, 2}, {T{0}, 1}, true},
  };
}

template <class T>
void expect_located_rules(Type type) {
  for (const auto& c : located_numbers<T>()) expect_located(type, c);
  if constexpr (std::is_floating_point_v<T>) {
    for (const auto& c : located_specials<T>()) expect_located(type, c);
  }
}

TEST(Reference, LocatedMinimumAndMaximum) {
  expect_located_rules<std::int16_t>(Type::int16_int32);
  expect_located_rules<std::int32_t>(Type::int32_int32);
  expect_located_rules<std::int64_t>(Type::int64_int32);
  expect_located_rules<float>(Type::float32_int32);
  expect_located_rules<double>(Type::float64_int32);
}

}  // namespace
}  // namespace unisono::arith::test::reference_test
