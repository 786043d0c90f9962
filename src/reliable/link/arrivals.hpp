// SPDX-License-Identifier: BSD-3-Clause
// Arrivals: the packets of one link that have arrived, as a bit vector over the numbers from the
// first missing one. All lower numbers have arrived, so a number is taken once, however often and
// late its packet comes. Numbers wrap. A value type; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/sequence.hpp"

namespace unisono::reliable {

// How far a link's sender may be ahead of the first packet that its receiver lacks. At 1400 bytes a
// packet that is 1.4 MB, ten times the bytes on a fast link within a host's response time.
inline constexpr std::uint64_t kWindow = 1024;
// The numbers in the mask of one request for repetition.
inline constexpr std::uint64_t kMaskNumbers = 64;

class Arrivals {
 public:
  explicit Arrivals(std::uint64_t first = 1) : missing_(first), end_(first) {}

  enum class Taken : std::uint8_t {
    fresh,
    seen,
    beyond,  // further ahead than a sender may be: ignored
  };
  Taken take(std::uint64_t number);
  // Numbers before `end` were sent, as another packet shows.
  void expect_until(std::uint64_t end);

  bool has(std::uint64_t number) const;
  bool has_all(std::uint64_t first, std::uint64_t last) const;

  std::uint64_t missing() const { return missing_; }  // the first number that has not come
  std::uint64_t end() const { return end_; }          // all known numbers are before it
  bool has_gap() const { return missing_ != end_; }
  // Bit i: number `from` + i has not arrived. `from` is at or after missing().
  std::uint64_t mask(std::uint64_t from) const;

 private:
  static std::size_t word_of(std::uint64_t number) { return number / 64 % (kWindow / 64); }
  static std::uint64_t bit_of(std::uint64_t number) { return std::uint64_t{1} << (number % 64); }

  std::uint64_t missing_;
  std::uint64_t end_;
  std::array<std::uint64_t, kWindow / 64> bits_{};
};

}  // namespace unisono::reliable
