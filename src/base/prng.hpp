// SPDX-License-Identifier: BSD-3-Clause
// Prng: a small deterministic generator; the same seed gives the same numbers on every machine.
// For tests, skew and back-off, never for keys. One thread at a time.
// Source: Blackman, Vigna: "Scrambled linear pseudorandom number generators" (xoshiro256**), seeded
// by splitmix64 as its authors advise.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/check.hpp"

namespace unisono::base {

class Prng {
 public:
  using result_type = std::uint64_t;  // with min, max and (): usable with <random> and std::shuffle

  explicit Prng(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = split_mix(seed);
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    UNISONO_CHECK(bound > 0, "Prng::below(0)");
    // Values under `unfair` would make the small remainders likelier.
    const std::uint64_t unfair = (0 - bound) % bound;
    std::uint64_t value = next();
    while (value < unfair) value = next();
    return value % bound;
  }

  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return next(); }

 private:
  static std::uint64_t split_mix(std::uint64_t& state) {
    std::uint64_t mixed = (state += 0x9e3779b97f4a7c15U);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace unisono::base
