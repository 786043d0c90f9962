// SPDX-License-Identifier: BSD-3-Clause
// Integers as lanes of a word against the library's own kernels: every operator of all widths, on
// random words, on equal ones, and on words with many zeros.
#include "arith/lanes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arith/kernel.hpp"
#include "base/prng.hpp"
#include "element_data.hpp"

namespace unisono::arith::lanes_test {
namespace {

constexpr std::size_t kWords = 4096;
using Words = std::vector<std::uint64_t>;

struct Pairs {
  Words left, right;
};

Pairs some_pairs() {
  base::Prng random(20261126);
  Pairs pairs;
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint64_t left = random.next();
    std::uint64_t right = random.next();
    if (i % 2 != 0) left &= random.next() & random.next() & random.next();
    if (i % 4 > 1) right &= random.next() & random.next() & random.next();
    if (i % 8 == 7) right = left;
    pairs.left.push_back(left);
    pairs.right.push_back(right);
  }
  return pairs;
}

std::uint64_t lanes_of(Operator op, std::uint64_t a, std::uint64_t b, std::uint32_t bits,
                       bool is_signed) {
  const std::uint64_t high = unisono_lanes_high(bits);
  const std::uint64_t left = unisono_lanes_truth(a, high, bits);
  const std::uint64_t right = unisono_lanes_truth(b, high, bits);
  if (op == Operator::sum) return unisono_lanes_add(a, b, high);
  if (op == Operator::prod) return unisono_lanes_multiply(a, b, bits);
  if (op == Operator::logical_and) return left & right;
  if (op == Operator::logical_or) return left | right;
  if (op == Operator::logical_xor) return left ^ right;
  return unisono_lanes_extreme(a, b, high, bits, is_signed ? high : 0, op == Operator::max ? 1 : 0);
}

TEST(Lanes, AgreeWithTheKernels) {
  const Pairs pairs = some_pairs();
  for (const Type type : {Type::int8, Type::uint8, Type::int16, Type::uint16, Type::int32,
                          Type::uint32, Type::int64, Type::uint64}) {
    const bool is_signed = type <= Type::int64;
    const auto bits = static_cast<std::uint32_t>(8 * type_size(type));
    for (const Operator op : {Operator::sum, Operator::prod, Operator::min, Operator::max,
                              Operator::logical_and, Operator::logical_or, Operator::logical_xor}) {
      Words expected(kWords);
      Words actual(kWords);
      const std::size_t elements = kWords * 8 / type_size(type);
      find_kernel(op, type)(expected.data(), pairs.left.data(), pairs.right.data(),
                            static_cast<std::int64_t>(elements), nullptr);
      for (std::size_t i = 0; i < kWords; ++i) {
        actual[i] = lanes_of(op, pairs.left[i], pairs.right[i], bits, is_signed);
      }
      EXPECT_EQ(test::difference({op, type}, reinterpret_cast<const unsigned char*>(actual.data()),
                                 reinterpret_cast<const unsigned char*>(expected.data()), elements),
                "")
          << type_name(type) << " " << operator_name(op);
    }
  }
}

}  // namespace
}  // namespace unisono::arith::lanes_test
