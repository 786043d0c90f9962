// SPDX-License-Identifier: BSD-3-Clause
// The integer calculation of sums, products, minima and maxima against the library's own kernels,
// which are the processor's floating-point unit: all pairs of edge classes and more than 10^7
// random pairs of each format, bit for bit; NaN as a class, as docs/reference/arithmetic.md asks.
#include "arith/soft_float.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arith/kernel.hpp"
#include "base/prng.hpp"
#include "element_data.hpp"
#include "harness/scale.hpp"
#include "soft_float_operands.hpp"

namespace unisono::arith::soft_float_test {
namespace {

constexpr std::int64_t kRandomPairs = 12'000'000;
constexpr std::int64_t kFewer = 4;  // times, of formats of 16 bits
constexpr std::size_t kBatch = 4096;

struct Float64 {
  using Bits = std::uint64_t;
  static constexpr Type type = Type::float64;
  static constexpr test::SoftFormat format = test::kSoftFloat64;
  static Bits sum(Bits a, Bits b) { return unisono_float64_add(a, b); }
  static Bits min(Bits a, Bits b) { return unisono_float64_min(a, b); }
  static Bits max(Bits a, Bits b) { return unisono_float64_max(a, b); }
  static Bits product(Bits a, Bits b) { return unisono_float64_multiply(a, b); }
};

struct Float32 {
  using Bits = std::uint32_t;
  static constexpr Type type = Type::float32;
  static constexpr test::SoftFormat format = test::kSoftFloat32;
  static Bits sum(Bits a, Bits b) { return unisono_float32_add(a, b); }
  static Bits min(Bits a, Bits b) { return unisono_float32_min(a, b); }
  static Bits max(Bits a, Bits b) { return unisono_float32_max(a, b); }
  static Bits product(Bits a, Bits b) { return unisono_float32_multiply(a, b); }
};

struct Float16Bits {
  using Bits = std::uint16_t;
  static constexpr Type type = Type::float16;
  static constexpr test::SoftFormat format = test::kSoftFloat16;
  static Bits sum(Bits a, Bits b) { return unisono_float16_add(a, b); }
  static Bits min(Bits a, Bits b) { return unisono_float16_min(a, b); }
  static Bits max(Bits a, Bits b) { return unisono_float16_max(a, b); }
  static Bits product(Bits a, Bits b) { return unisono_float16_multiply(a, b); }
};

struct BFloat16Bits {
  using Bits = std::uint16_t;
  static constexpr Type type = Type::bfloat16;
  static constexpr test::SoftFormat format = test::kSoftBFloat16;
  static Bits sum(Bits a, Bits b) { return unisono_bfloat16_add(a, b); }
  static Bits min(Bits a, Bits b) { return unisono_bfloat16_min(a, b); }
  static Bits max(Bits a, Bits b) { return unisono_bfloat16_max(a, b); }
  static Bits product(Bits a, Bits b) { return unisono_bfloat16_multiply(a, b); }
};

template <class Format>
class SoftFloat : public testing::Test {
 protected:
  using Word = typename Format::Bits;

  // Empty if all four operators agree with their kernels on the pairs.
  static std::string difference(const std::vector<Word>& left, const std::vector<Word>& right) {
    std::string found = compare(Operator::sum, Format::sum, left, right);
    if (found.empty()) found = compare(Operator::min, Format::min, left, right);
    if (found.empty()) found = compare(Operator::max, Format::max, left, right);
    if (found.empty()) found = compare(Operator::prod, Format::product, left, right);
    return found;
  }

 private:
  static std::string compare(Operator op, Word (*soft)(Word, Word), const std::vector<Word>& left,
                             const std::vector<Word>& right) {
    std::vector<Word> expected(left.size());
    std::vector<Word> actual(left.size());
    find_kernel(op, Format::type)(expected.data(), left.data(), right.data(),
                                  static_cast<std::int64_t>(left.size()), nullptr);
    for (std::size_t i = 0; i < left.size(); ++i) actual[i] = soft(left[i], right[i]);
    return test::difference({op, Format::type},
                            reinterpret_cast<const unsigned char*>(actual.data()),
                            reinterpret_cast<const unsigned char*>(expected.data()), left.size());
  }
};

using Formats = testing::Types<Float64, Float32, Float16Bits, BFloat16Bits>;
TYPED_TEST_SUITE(SoftFloat, Formats);

TYPED_TEST(SoftFloat, AgreesOnAllPairsOfEdgeClasses) {
  using Bits = typename TypeParam::Bits;
  std::vector<Bits> left;
  std::vector<Bits> right;
  for (const test::PatternPair& pair : test::edge_pattern_pairs(TypeParam::format)) {
    left.push_back(static_cast<Bits>(pair.left));
    right.push_back(static_cast<Bits>(pair.right));
  }
  EXPECT_GT(left.size(), 250'000U);
  EXPECT_EQ(this->difference(left, right), "");
}

TYPED_TEST(SoftFloat, AgreesOnTheEdgesOfTheOtherTests) {
  using Bits = typename TypeParam::Bits;
  const test::Operands operands = test::edge_pairs(TypeParam::type);
  std::vector<Bits> left;
  std::vector<Bits> right;
  for (std::size_t i = 0; i < operands.count; ++i) {
    left.push_back(test::element<Bits>(operands.left, i));
    right.push_back(test::element<Bits>(operands.right, i));
  }
  EXPECT_EQ(this->difference(left, right), "");
}

TYPED_TEST(SoftFloat, AgreesOnRandomPairs) {
  using Bits = typename TypeParam::Bits;
  constexpr std::uint64_t kSeed = 20261121;
  base::Prng random(kSeed);
  std::vector<Bits> left(kBatch);
  std::vector<Bits> right(kBatch);
  const std::int64_t pairs = sizeof(Bits) > 2 ? kRandomPairs : kRandomPairs / kFewer;
  for (std::int64_t done = 0; done < harness::scaled(pairs); done += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const test::PatternPair pair = test::random_pattern_pair(TypeParam::format, random);
      left[i] = static_cast<Bits>(pair.left);
      right[i] = static_cast<Bits>(pair.right);
    }
    ASSERT_EQ(this->difference(left, right), "") << "seed " << kSeed << ", batch from " << done;
  }
}

// Products that are near the smallest normal number, where digits are lost one by one.
TYPED_TEST(SoftFloat, AgreesOnProductsAroundTheSmallestNumbers) {
  using Bits = typename TypeParam::Bits;
  constexpr std::uint64_t kSeed = 20261126;
  base::Prng random(kSeed);
  const int width = TypeParam::format.width;
  const std::uint64_t exponents = (std::uint64_t{1} << TypeParam::format.exponent_bits) - 1;
  const auto span = static_cast<std::uint64_t>(width) + 8;
  std::vector<Bits> left(kBatch);
  std::vector<Bits> right(kBatch);
  for (std::int64_t done = 0; done < harness::scaled(kRandomPairs / 8); done += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const test::PatternPair pair = test::random_pattern_pair(TypeParam::format, random);
      const std::uint64_t own = pair.left >> width & exponents;
      const std::uint64_t other = (exponents / 2 + 4 - random.below(span) - own) & exponents;
      left[i] = static_cast<Bits>(pair.left);
      right[i] = static_cast<Bits>((pair.right & ~(exponents << width)) | other << width);
    }
    ASSERT_EQ(this->difference(left, right), "") << "seed " << kSeed << ", batch from " << done;
  }
}

// The standard leaves this open; the header defines it.
TEST(SoftFloatNan, KeepsTheLeftPayloadAndIsQuiet) {
  const std::uint64_t signalling = 0xFFF0000000000123;
  const std::uint64_t other = 0x7FF8000000000456;
  EXPECT_EQ(unisono_float64_add(signalling, other), 0xFFF8000000000123);
  EXPECT_EQ(unisono_float64_min(other, signalling), other);
  EXPECT_EQ(unisono_float64_max(0, signalling), 0xFFF8000000000123);
  EXPECT_EQ(unisono_float64_add(0x7FF0000000000000, 0xFFF0000000000000), UNISONO_FLOAT64_NAN);
  EXPECT_EQ(unisono_float32_add(0xFF800000, 0x7F800000), UNISONO_FLOAT32_NAN);
  EXPECT_EQ(unisono_float32_add(0x7F800001, 0), 0x7FC00001U);
  EXPECT_EQ(unisono_float64_multiply(signalling, other), 0xFFF8000000000123);
  EXPECT_EQ(unisono_float64_multiply(0, 0x7FF0000000000000), UNISONO_FLOAT64_NAN);
}

}  // namespace
}  // namespace unisono::arith::soft_float_test
