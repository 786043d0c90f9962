// SPDX-License-Identifier: BSD-3-Clause
// The two 16-bit floating-point formats as bit patterns, and their conversions from and to float32
// in plain integer code: no compiler or processor support for them is needed. Widening is exact;
// narrowing rounds to nearest even, with subnormals, infinities and NaN (any NaN stays a NaN).
// Value types; any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace unisono::arith {

// IEEE-754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
  std::uint16_t bits;
};

// The upper half of an IEEE-754 binary32: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  std::uint16_t bits;
};

inline float to_float32(Float16 h) {
  const std::uint32_t sign = (h.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = h.bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | (magnitude << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

inline float to_float32(BFloat16 h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h.bits) << 16);
}

inline Float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t result = 0;
  if (magnitude > 0x7F800000u) {
    result = 0x7E00u;
  } else if (magnitude >= 0x477FF000u) {  // 65520 = the middle between the largest number and 2^16
    result = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal number
    result = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // The unit of a float32 in [0.5, 1) is that of the float16 subnormals, 2^-24: the addition
    // rounds.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5f);
  }
  return {static_cast<std::uint16_t>(sign | result)};
}

inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const std::uint32_t result = nan ? bits | 0x00400000u : bits + 0x7FFFu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>(result >> 16)};
}

template <class Half>
Half narrow(float value);
template <>
inline Float16 narrow<Float16>(float value) {
  return to_float16(value);
}
template <>
inline BFloat16 narrow<BFloat16>(float value) {
  return to_bfloat16(value);
}

}  // namespace unisono::arith
