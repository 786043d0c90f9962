// SPDX-License-Identifier: BSD-3-Clause
// Expansions: sums of floating-point numbers as two numbers, sum + rest, and whether an error was
// lost, with the error-free addition of Knuth (1969) and Moller (1965). A block of them is added to
// at the best instruction set of the processor. No allocation, no lock; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::arith {

template <class Real>
Real add_with_error(Real left, Real right, Real& error) {
  const Real sum = left + right;
  const Real part = sum - left;
  error = (left - (sum - part)) + (right - part);
  return sum;
}

// How an element is summed where an expansion does not suffice: it lost an error, or is infinite or
// NaN. `result` has room for one element.
struct Mend {
  void (*element)(const void* context, std::size_t at, void* result) = nullptr;
  const void* context = nullptr;
};

// target[i] = the sum of rows[0][i] ... rows[count - 1][i], rounded once. The target may be one of
// the rows; an element is mended before it is written.
void sum_rows(float* target, const float* const* rows, std::int32_t count, std::size_t elements,
              const Mend& mend);
void sum_rows(double* target, const double* const* rows, std::int32_t count, std::size_t elements,
              const Mend& mend);

// The sum of an element is sum + rest if `lost` is 0.
template <class Real, std::size_t kCount>
struct ExpansionBlock {
  alignas(64) Real sum[kCount];
  alignas(64) Real rest[kCount];
  alignas(64) Real lost[kCount];
};

// Adds a term to each expansion. `lost` becomes other than 0, perhaps NaN, where an error does not
// fit into `rest`.
void add_to_expansions(float* sum, float* rest, float* lost, const float* terms, std::size_t count);
void add_to_expansions(double* sum, double* rest, double* lost, const double* terms,
                       std::size_t count);

}  // namespace unisono::arith
