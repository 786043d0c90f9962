// SPDX-License-Identifier: BSD-3-Clause
// Blocks of 16-bit numbers on their way into expansions of float32 and back, at the best
// instruction set of the processor. No allocation, no lock; any thread.
#pragma once

#include <cstddef>

#include "arith/half.hpp"

namespace unisono::arith {

// terms[i] = the number i of `from`, which may have any alignment.
void widen(float* terms, const Float16* from, std::size_t count);
void widen(float* terms, const BFloat16* from, std::size_t count);

// sums[i] = sum[i] + rest[i], rounded once. That is not known where lost[i] is not 0, or the sum is
// infinite or NaN. Returns false if there are such elements, and makes lost[i] other than 0 for
// each.
bool narrow_expansions(Float16* sums, const float* sum, const float* rest, float* lost,
                       std::size_t count);
bool narrow_expansions(BFloat16* sums, const float* sum, const float* rest, float* lost,
                       std::size_t count);

}  // namespace unisono::arith
