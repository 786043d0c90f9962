// SPDX-License-Identifier: BSD-3-Clause
// Exact sums: target[i] = the sum over all sources of source[i], rounded once to nearest, ties to
// even. So the bits do not depend on the order of the sources or on how they are grouped.
//
// NaN, or infinities of both signs, give the one quiet NaN. The sum is -0 only if all terms are -0.
// This holds in the default floating-point environment.
// No allocation, no lock, no system call; any thread. At most 2^31 - 1 sources, at least one.
#pragma once

#include <cstdint>
#include <span>

namespace unisono::arith {

// Raw bits of IEEE binary16 and of bfloat16; complex numbers are twice as many reals. The target
// may be one of the sources, but may not overlap them otherwise.
void sum_exactly_float16(std::uint16_t* target, std::span<const std::uint16_t* const> sources,
                         std::int64_t count);
void sum_exactly_bfloat16(std::uint16_t* target, std::span<const std::uint16_t* const> sources,
                          std::int64_t count);
void sum_exactly_float32(float* target, std::span<const float* const> sources, std::int64_t count);
void sum_exactly_float64(double* target, std::span<const double* const> sources,
                         std::int64_t count);

}  // namespace unisono::arith
