// SPDX-License-Identifier: BSD-3-Clause
// Exact sums of 16-bit numbers, in registers, and blocks of them on their way into expansions of
// float32 and back, at the best instruction set of the processor. No allocation, no lock; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/half.hpp"
#include "arith/sums/expansion.hpp"

namespace unisono::arith {

// target[i] = the sum of rows[0][i] ... rows[count - 1][i], rounded once. The target may be one of
// the rows; an element is mended before it is written.
void sum_rows(Float16* target, const Float16* const* rows, std::int32_t count, std::size_t elements,
              const Mend& mend);
void sum_rows(BFloat16* target, const BFloat16* const* rows, std::int32_t count,
              std::size_t elements, const Mend& mend);

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
