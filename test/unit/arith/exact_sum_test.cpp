// SPDX-License-Identifier: BSD-3-Clause
// Exact sums, bit for bit, against a fixed-point number that has room for every bit of every term.
// It is rounded by a search among all values of the format. Seeded random terms of every kind.
// The versions of expansion.cpp and half_expansion.cpp for each instruction set are tested here.
#include "arith/sums/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "base/simd/instruction_set.hpp"
#include "harness/scale.hpp"

namespace unisono::arith::exact_sum_test {
namespace {

constexpr std::int64_t kRounds = 230;
constexpr std::size_t kMostTerms = 66;
constexpr std::size_t kElements = 133;  // more than fill four registers

template <Type kType, class RawBits, int kFractionBits, int kExponentBits>
struct SumFormat {
  using Raw = RawBits;
  static constexpr Type type = kType;
  static constexpr int fraction = kFractionBits;
  static constexpr std::uint64_t sign = std::uint64_t{1} << (kFractionBits + kExponentBits);
  static constexpr std::uint64_t one_exponent = std::uint64_t{1} << kFractionBits;
  static constexpr std::uint64_t infinity = sign - one_exponent;
  static constexpr std::uint64_t nan = infinity + one_exponent / 2;
  static constexpr std::uint64_t one = (sign - one_exponent) / 2 / one_exponent * one_exponent;
};
using SumFloat16 = SumFormat<Type::float16, std::uint16_t, 10, 5>;
using SumBfloat16 = SumFormat<Type::bfloat16, std::uint16_t, 7, 8>;
using SumFloat32 = SumFormat<Type::float32, std::uint32_t, 23, 8>;
using SumFloat64 = SumFormat<Type::float64, std::uint64_t, 52, 11>;

// A two's complement integer of 2176 bits, in units of the smallest subnormal number. The pattern
// of infinity counts as the power of two that follows the largest number.
template <class F>
class FixedPoint {
 public:
  void add(std::uint64_t pattern, bool minus = false) {
    std::uint64_t bits = pattern & (F::one_exponent - 1);
    auto shift = static_cast<std::size_t>((pattern & ~F::sign) / F::one_exponent);
    if (shift > 0) {
      bits += F::one_exponent;
      --shift;
    }
    const bool subtract = ((pattern & F::sign) != 0) != minus;
    for (; bits != 0; bits &= bits - 1) {
      add_power(shift + static_cast<std::size_t>(std::countr_zero(bits)), subtract);
    }
  }

  int sign() const {
    if (words_.back() >> 63 != 0) return -1;
    return std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; }) ? 0 : 1;
  }

  // The pattern nearest to this, which is not negative. Patterns are in the order of their values.
  std::uint64_t nearest() const {
    std::uint64_t below = 0, above = F::infinity + 1;  // below <= this < above
    while (above - below > 1) {
      const std::uint64_t middle = below + (above - below) / 2;
      FixedPoint rest = *this;
      rest.add(middle, true);
      (rest.sign() < 0 ? above : below) = middle;
    }
    if (below == F::infinity) return below;
    FixedPoint beyond_middle;  // twice this, minus both neighbours
    for (std::size_t bit = 0; bit + 1 < words_.size() * 64; ++bit) {
      if ((words_[bit / 64] >> bit % 64 & 1) != 0) beyond_middle.add_power(bit + 1, false);
    }
    beyond_middle.add(below, true);
    beyond_middle.add(below + 1, true);
    const int side = beyond_middle.sign();
    return below + (side > 0 || (side == 0 && below % 2 == 1) ? 1 : 0);
  }

 private:
  void add_power(std::size_t exponent, bool minus) {
    std::size_t at = exponent / 64;
    const std::uint64_t power = std::uint64_t{1} << exponent % 64;
    const std::uint64_t before = words_[at];
    words_[at] += minus ? ~power + 1 : power;
    if (minus ? before >= power : words_[at] >= power) return;
    while (++at < words_.size()) {
      if (minus ? words_[at]-- != 0 : ++words_[at] != 0) return;
    }
  }

  std::array<std::uint64_t, 34> words_{};
};

using Patterns = std::vector<std::uint64_t>;

template <class F>
std::uint64_t expected_sum(const Patterns& terms) {
  FixedPoint<F> sum, opposite;
  bool plus_infinity = false, minus_infinity = false;
  for (const std::uint64_t term : terms) {
    if ((term & ~F::sign) > F::infinity) return F::nan;
    plus_infinity = plus_infinity || term == F::infinity;
    minus_infinity = minus_infinity || term == (F::infinity | F::sign);
    sum.add(term);
    opposite.add(term, true);
  }
  if (plus_infinity && minus_infinity) return F::nan;
  if (plus_infinity) return F::infinity;
  if (minus_infinity) return F::infinity | F::sign;
  if (sum.sign() < 0) return F::sign | opposite.nearest();
  const bool minus_zeros = std::ranges::all_of(terms, [](auto term) { return term == F::sign; });
  return minus_zeros ? F::sign : sum.nearest();
}

// The terms are of one kind out of eight. Subnormal ones are the kind of which no line speaks. The
// large ones have partial sums that overflow.
template <class F>
Patterns random_terms(base::Prng& random, std::size_t count) {
  const std::uint64_t kind = random.below(8);
  Patterns terms;
  while (terms.size() < count) {
    const std::uint64_t choices[] = {0, 1, F::one_exponent - 1, random.below(F::one_exponent)};
    std::uint64_t term = choices[random.below(4)];
    if (kind == 0 || kind == 6) term = random.below(F::infinity);
    if (kind == 2) term += F::one + random.below(4) * F::one_exponent;
    if (kind == 3) term += F::infinity - (1 + random.below(2)) * F::one_exponent;
    if (kind == 4) term = 0;
    if (kind == 5) term += random.below(F::infinity / F::one_exponent + 1) * F::one_exponent;
    if (kind == 6 && random.below(8) == 0) term = F::infinity;
    if (kind == 7) {  // ties, some of them with the least number to either side
      const std::uint64_t exponents = F::infinity / F::one_exponent - F::fraction - 2;
      const std::uint64_t half = (1 + random.below(exponents)) * F::one_exponent;
      terms.push_back(half | (random.below(2) * F::sign));
      terms.push_back(random.below(3) == 0 ? 1 | (random.below(2) * F::sign) : 0);
      term += half + (F::fraction + 1) * F::one_exponent;
    }
    terms.push_back(term | (random.below(2) * F::sign));
  }
  // Most terms have an opposite in every other case.
  if (random.below(2) == 0) {
    for (std::size_t i = 1; i < count; i += 2) {
      if (random.below(8) != 0) terms[i] = terms[i - 1] ^ F::sign;
    }
  }
  if (kind == 4 && random.below(2) == 0) terms.assign(count, F::sign);
  std::shuffle(terms.begin(), terms.end(), random);
  terms.resize(count);
  return terms;
}

// Adds vectors, whose elements are the rows of terms. The target is a vector of its own or one of
// the sources, as the number says.
template <class F>
Patterns actual_sums(const std::vector<Patterns>& rows, std::size_t target) {
  using Raw = typename F::Raw;
  const std::size_t count = rows.front().size();
  std::vector<std::vector<Raw>> vectors(count + 1, std::vector<Raw>(rows.size()));
  for (std::size_t term = 0; term < count; ++term) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      vectors[term][i] = static_cast<Raw>(rows[i][term]);
    }
  }
  const Operands operands{[](const void* all, std::int32_t number) -> const void* {
                            const auto& list =
                                *static_cast<const std::vector<std::vector<Raw>>*>(all);
                            return list[static_cast<std::size_t>(number)].data();
                          },
                          &vectors, static_cast<std::int32_t>(count)};
  find_exact_sum(F::type)(vectors[target].data(), operands, static_cast<std::int64_t>(rows.size()));
  return {vectors[target].begin(), vectors[target].end()};
}

template <class F>
class ExactSum : public testing::Test {};
using SumFormats = testing::Types<SumFloat16, SumBfloat16, SumFloat32, SumFloat64>;
TYPED_TEST_SUITE(ExactSum, SumFormats);

TYPED_TEST(ExactSum, OfRandomTermsIsRoundedOnce) {
  constexpr std::uint64_t kSeed = 20261126;
  base::Prng random(kSeed);
  for (std::int64_t round = 0; round < harness::scaled(kRounds); ++round) {
    const std::size_t count = 1 + random.below(random.below(2) == 0 ? 5 : kMostTerms);
    std::vector<Patterns> rows;
    Patterns expected;
    for (std::size_t i = 0; i < kElements; ++i) {
      rows.push_back(random_terms<TypeParam>(random, count));
      expected.push_back(expected_sum<TypeParam>(rows.back()));
    }
    const std::size_t target = random.below(count + 1);
    // The best set in each round, each of the lesser ones in every fourth.
    const std::vector<base::InstructionSet> sets = base::supported_instruction_sets();
    for (const base::InstructionSet set : sets) {
      if (set != sets.back() && (round + static_cast<int>(set)) % 4 != 0) continue;
      const base::NarrowedInstructionSet narrowed(set);
      ASSERT_EQ(actual_sums<TypeParam>(rows, target), expected)
          << "seed " << kSeed << ", round " << round << ", instruction set "
          << static_cast<int>(set);
    }
  }
}

// Expected bits by hand, so that they do not hang on the reference.
TYPED_TEST(ExactSum, OfKnownTerms) {
  using F = TypeParam;
  const std::uint64_t sign = F::sign, one = F::one, max = F::infinity - 1;
  const std::uint64_t half = one - (F::fraction + 1) * F::one_exponent;  // of the last bit of 1
  const std::uint64_t half_of_max = F::infinity - (F::fraction + 2) * F::one_exponent;
  const std::pair<Patterns, std::uint64_t> cases[] = {
      {{sign}, sign},
      {{sign, sign, sign}, sign},
      {{sign, 0}, 0},
      {{one, one | sign}, 0},
      {{max, max, max | sign}, max},
      {{max, max, max | sign, max | sign}, 0},
      {{max, half_of_max}, F::infinity},
      {{max, half_of_max, 1 | sign}, max},
      {{one, half}, one},
      {{one + 1, half}, one + 2},
      {{one, half, 1}, one + 1},
      {{one + 1, half, 1 | sign}, one + 1},
      {{1, max, max | sign}, 1},
      {{F::infinity, max | sign}, F::infinity},
      {{F::infinity | sign, one, F::infinity | sign}, F::infinity | sign},
      {{F::infinity, F::infinity | sign}, F::nan},
      {{F::nan | sign | 1}, F::nan},
      {{F::infinity + 1, F::infinity}, F::nan},
  };
  for (const auto& [terms, expected] : cases) {
    for (const base::InstructionSet set : base::supported_instruction_sets()) {
      const base::NarrowedInstructionSet narrowed(set);
      EXPECT_EQ(actual_sums<F>({terms}, 0), Patterns{expected})
          << testing::PrintToString(terms) << ", instruction set " << static_cast<int>(set);
    }
  }
}

}  // namespace
}  // namespace unisono::arith::exact_sum_test
