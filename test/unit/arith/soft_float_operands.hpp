// SPDX-License-Identifier: BSD-3-Clause
// Bit patterns on which a software adder fails easily, for the tests of soft_float.h in user space
// and inside the kernel. Every class of exponent with every class of fraction in both signs. Also
// random pairs; most are close enough in size that digits cancel or have to be rounded.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.hpp"

namespace unisono::arith::test {

// A format of `width` bits of fraction below `exponent_bits` of exponent and the sign.
struct SoftFormat {
  int width;
  int exponent_bits;
};
inline constexpr SoftFormat kSoftFloat64{52, 11};
inline constexpr SoftFormat kSoftFloat32{23, 8};
inline constexpr SoftFormat kSoftFloat16{10, 5};
inline constexpr SoftFormat kSoftBFloat16{7, 8};

struct PatternPair {
  std::uint64_t left;
  std::uint64_t right;
};

inline std::vector<std::uint64_t> edge_patterns(SoftFormat format) {
  const int width = format.width;
  const std::uint64_t one = std::uint64_t{1} << width;
  const std::uint64_t top = (std::uint64_t{1} << format.exponent_bits) - 1;  // infinity and NaN
  const std::uint64_t middle = top / 2;                                      // that of 1.0
  const auto distance = static_cast<std::uint64_t>(width);
  const std::vector<std::uint64_t> exponents = {0,
                                                1,
                                                2,
                                                distance,
                                                middle - 1,
                                                middle,
                                                middle + 1,
                                                middle + 2,
                                                middle + 3,
                                                top - 1,
                                                top,
                                                top - 2,
                                                middle + distance - 1,
                                                middle + distance,
                                                middle + distance + 1,
                                                middle + distance + 2,
                                                middle + distance + 3,
                                                middle + distance + 4,
                                                distance + 1};
  const std::vector<std::uint64_t> fractions = {
      0,       1,       2,           3,           4,       one / 2, one / 2 - 1,
      one - 1, one - 2, one / 2 + 1, one / 4 - 1, one / 3, one / 4, one - 4,
  };
  const std::uint64_t sign = std::uint64_t{1} << (width + format.exponent_bits);
  std::vector<std::uint64_t> patterns;
  for (const std::uint64_t exponent : exponents) {
    for (const std::uint64_t fraction : fractions) {
      patterns.push_back(exponent << width | fraction);
      patterns.push_back(sign | exponent << width | fraction);
    }
  }
  return patterns;
}

inline std::vector<PatternPair> edge_pattern_pairs(SoftFormat format) {
  const std::vector<std::uint64_t> edges = edge_patterns(format);
  std::vector<PatternPair> pairs;
  pairs.reserve(edges.size() * edges.size());
  for (const std::uint64_t left : edges) {
    for (const std::uint64_t right : edges) pairs.push_back({left, right});
  }
  return pairs;
}

// One of four pairs is of any bits; the exponents of the others are at most 63 apart. One
// fraction of two has a long run of equal bits at its end.
inline PatternPair random_pattern_pair(SoftFormat format, base::Prng& random) {
  const int width = format.width;
  const std::uint64_t all = ~std::uint64_t{0} >> (63 - width - format.exponent_bits);
  const std::uint64_t fraction = (std::uint64_t{1} << width) - 1;
  const std::uint64_t exponents = (std::uint64_t{1} << format.exponent_bits) - 1;
  const std::uint64_t dice = random.next();
  std::uint64_t left = random.next() & all;
  std::uint64_t right = random.next() & all;
  if (dice % 4 != 0) {
    const std::uint64_t near = ((left >> width) + (dice >> 8) % 127 - 63) & exponents;
    right = (right & ~(exponents << width)) | near << width;
  }
  const std::uint64_t run = fraction >> (dice >> 16) % static_cast<std::uint64_t>(width);
  if ((dice & 4) != 0) left = (dice & 8) != 0 ? left | run : left & ~run;
  if ((dice & 16) != 0) right = (dice & 32) != 0 ? right | run : right & ~run;
  return {left, right};
}

}  // namespace unisono::arith::test
