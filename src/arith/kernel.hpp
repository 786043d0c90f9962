// SPDX-License-Identifier: BSD-3-Clause
// Reduction kernels: target[i] = left[i] op right[i] for count elements, at the best instruction
// set the processor has. The rules of rounding, NaN and signed zero are in
// docs/reference/arithmetic.md; every kernel agrees with the scalar reference bit for bit
// (NaN results: as a class). No allocation, no lock, no system call; any thread.
#pragma once

#include <cstdint>

#include "arith/type.hpp"

namespace unisono::arith {

// target may be left or right, but may not overlap them otherwise. Any alignment. The last argument
// is for user-defined functions and ignored by the built-in kernels.
using Kernel = void (*)(void* target, const void* left, const void* right, std::int64_t count,
                        const void* context);

// nullptr if !fits(op, type). Constant time after the first call of the process.
Kernel find_kernel(Operator op, Type type);

// The plain C++ twin of each kernel, which defines the result.
Kernel find_reference_kernel(Operator op, Type type);

// The instruction set in use, e.g. "AVX3", "SSE4", "NEON".
const char* kernel_target();

}  // namespace unisono::arith
