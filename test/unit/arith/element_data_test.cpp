// SPDX-License-Identifier: BSD-3-Clause
// The operands of the other tests (element_data.hpp), and a test that they hold what they promise.
#include "element_data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "arith/half.hpp"
#include "arith/scalar.hpp"

namespace unisono::arith::test {
namespace {

template <class T>
std::vector<T> integer_edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges = {0, 1, 2, 3, 10, Limits::max(), Limits::max() - 1, Limits::min()};
  edges.push_back(static_cast<T>(Limits::min() + 1));
  edges.push_back(static_cast<T>(Limits::max() / 2 + 1));
  edges.push_back(static_cast<T>(-1));
  edges.push_back(static_cast<T>(-2));
  edges.push_back(static_cast<T>(0x5555555555555555));
  return edges;
}

template <class T>
std::vector<T> float_edges() {
  using Limits = std::numeric_limits<T>;
  const T ulp = Limits::epsilon();
  std::vector<T> edges = {0,
                          1,
                          1 + ulp,
                          1 - ulp / 2,
                          T{3},
                          T{1} / 3,
                          ulp / 2,
                          Limits::max(),
                          Limits::max() / 2,
                          Limits::min(),
                          Limits::min() - Limits::denorm_min(),
                          Limits::denorm_min(),
                          3 * Limits::denorm_min(),
                          std::sqrt(Limits::min()),
                          std::sqrt(Limits::max()),
                          Limits::infinity(),
                          Limits::quiet_NaN()};
  const std::size_t positive = edges.size();
  for (std::size_t i = 0; i < positive; ++i) edges.push_back(-edges[i]);
  return edges;
}

std::vector<std::uint16_t> half_edges(std::uint16_t infinity, std::uint16_t one) {
  const std::vector<int> magnitudes = {0,          1,
                                       2,          3,
                                       one,        one + 1,
                                       one - 1,    one / 2,
                                       one / 8,    infinity - 1,
                                       infinity,   infinity + 1,
                                       0x7FFF,     infinity / 31,
                                       one * 2 / 3};
  std::vector<std::uint16_t> edges;
  for (const int magnitude : magnitudes) {
    edges.push_back(static_cast<std::uint16_t>(magnitude));
    edges.push_back(static_cast<std::uint16_t>(magnitude | 0x8000));
  }
  return edges;
}

template <class T>
Bytes complex_edges() {
  const std::vector<T> parts = {0,
                                -T{0},
                                1,
                                -3,
                                T{1} / 3,
                                1 + std::numeric_limits<T>::epsilon(),
                                std::numeric_limits<T>::max(),
                                std::numeric_limits<T>::denorm_min(),
                                -std::numeric_limits<T>::infinity(),
                                std::numeric_limits<T>::quiet_NaN()};
  std::vector<Complex<T>> edges;
  for (const T re : parts) {
    for (const T im : parts) edges.push_back({re, im});
  }
  return to_bytes(edges);
}

template <class T>
Bytes pair_edges(const std::vector<T>& values) {
  Bytes edges;
  unsigned char padding = 1;
  for (const T value : values) {
    for (const std::int32_t index : {0, 1, -1, 7, std::numeric_limits<std::int32_t>::max(),
                                     std::numeric_limits<std::int32_t>::min()}) {
      Bytes pair(sizeof(Pair<T>), padding++);  // bytes not covered by members stay as padding
      std::memcpy(pair.data() + offsetof(Pair<T>, value), &value, sizeof value);
      std::memcpy(pair.data() + offsetof(Pair<T>, index), &index, sizeof index);
      edges.insert(edges.end(), pair.begin(), pair.end());
    }
  }
  return edges;
}

template <class T>
bool same_lane(const unsigned char* actual, const unsigned char* expected) {
  if (std::memcmp(actual, expected, sizeof(T)) == 0) return true;
  T a;
  T b;
  std::memcpy(&a, actual, sizeof a);
  std::memcpy(&b, expected, sizeof b);
  if constexpr (HalfFloat<T>) {
    return std::isnan(to_float32(a)) && std::isnan(to_float32(b));
  } else {
    return std::isnan(a) && std::isnan(b);
  }
}

bool same_element(Type type, const unsigned char* actual, const unsigned char* expected) {
  const std::size_t half = type_size(type) / 2;
  switch (type) {
    case Type::float16:
      return same_lane<Float16>(actual, expected);
    case Type::bfloat16:
      return same_lane<BFloat16>(actual, expected);
    case Type::float32:
      return same_lane<float>(actual, expected);
    case Type::float64:
      return same_lane<double>(actual, expected);
    case Type::complex64:
      return same_lane<float>(actual, expected) && same_lane<float>(actual + half, expected + half);
    case Type::complex128:
      return same_lane<double>(actual, expected) &&
             same_lane<double>(actual + half, expected + half);
    case Type::byte:
    case Type::int8:
    case Type::int16:
    case Type::int32:
    case Type::int64:
    case Type::uint8:
    case Type::uint16:
    case Type::uint32:
    case Type::uint64:
    case Type::int16_int32:
    case Type::int32_int32:
    case Type::int64_int32:
    case Type::float32_int32:
    case Type::float64_int32:
      break;
  }
  return std::memcmp(actual, expected, type_size(type)) == 0;
}

// Most significant byte first.
std::string in_hex(const unsigned char* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = size; i-- > 0;) {
    char digits[4];
    std::snprintf(digits, sizeof digits, " %02x", bytes[i]);
    text += digits;
  }
  return text;
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int op = 0; op < kOperatorCount; ++op) {
    for (int type = 0; type < kTypeCount; ++type) {
      const Case c{static_cast<Operator>(op), static_cast<Type>(type)};
      if (fits(c.op, c.type)) cases.push_back(c);
    }
  }
  return cases;
}

std::string case_name(const Case& c) {
  return std::string(operator_name(c.op)).append(" of ").append(type_name(c.type));
}

Bytes edge_elements(Type type) {
  switch (type) {
    case Type::byte:
    case Type::uint8:
      return to_bytes(integer_edges<std::uint8_t>());
    case Type::int8:
      return to_bytes(integer_edges<std::int8_t>());
    case Type::int16:
      return to_bytes(integer_edges<std::int16_t>());
    case Type::int32:
      return to_bytes(integer_edges<std::int32_t>());
    case Type::int64:
      return to_bytes(integer_edges<std::int64_t>());
    case Type::uint16:
      return to_bytes(integer_edges<std::uint16_t>());
    case Type::uint32:
      return to_bytes(integer_edges<std::uint32_t>());
    case Type::uint64:
      return to_bytes(integer_edges<std::uint64_t>());
    case Type::float16:
      return to_bytes(half_edges(0x7C00, 0x3C00));
    case Type::bfloat16:
      return to_bytes(half_edges(0x7F80, 0x3F80));
    case Type::float32:
      return to_bytes(float_edges<float>());
    case Type::float64:
      return to_bytes(float_edges<double>());
    case Type::complex64:
      return complex_edges<float>();
    case Type::complex128:
      return complex_edges<double>();
    case Type::int16_int32:
      return pair_edges(integer_edges<std::int16_t>());
    case Type::int32_int32:
      return pair_edges(integer_edges<std::int32_t>());
    case Type::int64_int32:
      return pair_edges(integer_edges<std::int64_t>());
    case Type::float32_int32:
      return pair_edges(float_edges<float>());
    case Type::float64_int32:
      return pair_edges(float_edges<double>());
  }
  return {};
}

Bytes random_elements(Type type, std::size_t count, std::uint64_t seed) {
  const Bytes edges = edge_elements(type);
  const std::size_t size = type_size(type);
  std::mt19937_64 random(seed);
  Bytes result;
  result.reserve(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t dice = random();
    const std::size_t edge = (dice >> 8) % (edges.size() / size) * size;
    for (std::size_t byte = 0; byte < size; ++byte) {
      // Half of the others differ from a special value only in their lower bytes: numbers of
      // similar size, whose sums have to be rounded.
      const bool keep = dice % 2 == 0 || (dice % 4 == 1 && byte + 2 >= size);
      result.push_back(keep ? edges[edge + byte] : static_cast<unsigned char>(random()));
    }
  }
  return result;
}

Operands edge_pairs(Type type) {
  constexpr std::size_t kRandom = 20000;
  const Bytes edges = edge_elements(type);
  const std::size_t size = type_size(type);
  Operands operands{random_elements(type, kRandom, 1), random_elements(type, kRandom, 2), 0};
  for (std::size_t a = 0; a < edges.size(); a += size) {
    for (std::size_t b = 0; b < edges.size(); b += size) {
      const auto at = [&](std::size_t i) { return edges.begin() + static_cast<std::ptrdiff_t>(i); };
      operands.left.insert(operands.left.end(), at(a), at(a + size));
      operands.right.insert(operands.right.end(), at(b), at(b + size));
    }
  }
  operands.count = operands.left.size() / size;
  return operands;
}

std::string difference(const Case& c, const unsigned char* actual, const unsigned char* expected,
                       std::size_t count) {
  const std::size_t size = type_size(c.type);
  if (count == 0 || std::memcmp(actual, expected, count * size) == 0) return "";
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char* a = actual + i * size;
    const unsigned char* e = expected + i * size;
    if (same_element(c.type, a, e)) continue;
    return case_name(c) + ": element " + std::to_string(i) + " of " + std::to_string(count) +
           " is" + in_hex(a, size) + ", not" + in_hex(e, size);
  }
  return "";
}

}  // namespace unisono::arith::test

namespace unisono::arith::test::element_data_test {
namespace {

TEST(ElementData, ComparisonTellsNaNFromNumbersAndIsExactOtherwise) {
  const Case sum{Operator::sum, Type::float32};
  const Bytes nan = to_bytes<std::uint32_t>({0x7FC00000});
  const Bytes other_nan = to_bytes<std::uint32_t>({0xFF800001});
  const Bytes infinity = to_bytes<std::uint32_t>({0x7F800000});
  const Bytes zero = to_bytes<float>({0.0f});
  const Bytes minus_zero = to_bytes<float>({-0.0f});
  EXPECT_EQ(difference(sum, nan.data(), other_nan.data(), 1), "");
  EXPECT_NE(difference(sum, nan.data(), infinity.data(), 1), "");
  EXPECT_NE(difference(sum, zero.data(), minus_zero.data(), 1), "");
  const Case bits{Operator::bitwise_or, Type::uint32};
  EXPECT_NE(difference(bits, nan.data(), other_nan.data(), 1), "");
}

TEST(ElementData, EveryTypeHasSpecialValuesAndRandomOnes) {
  for (int number = 0; number < kTypeCount; ++number) {
    const Type type = static_cast<Type>(number);
    const Bytes edges = edge_elements(type);
    EXPECT_GE(edges.size(), 8 * type_size(type)) << type_name(type);
    EXPECT_EQ(edges.size() % type_size(type), 0u) << type_name(type);
    EXPECT_EQ(random_elements(type, 100, 7).size(), 100 * type_size(type)) << type_name(type);
    EXPECT_EQ(random_elements(type, 100, 7), random_elements(type, 100, 7)) << type_name(type);
    EXPECT_NE(random_elements(type, 100, 7), random_elements(type, 100, 8)) << type_name(type);
  }
}

}  // namespace
}  // namespace unisono::arith::test::element_data_test
