// SPDX-License-Identifier: BSD-3-Clause
// Exact sums: target[i] = the sum over all operands of operand[i], rounded once to nearest, ties to
// even. So the bits do not depend on the order of the operands or on how they are grouped.
//
// NaN, or infinities of both signs, give the one quiet NaN. The sum is -0 only if all terms are -0.
// The two parts of a complex number are summed apart. This holds in the default floating-point
// environment. No allocation, no lock, no system call; any thread.
#pragma once

#include <cstdint>

#include "arith/type.hpp"

namespace unisono::arith {

// Vectors that may lie anywhere: `at` finds the one of a number from 0 on. At least one.
struct Operands {
  const void* (*at)(const void* context, std::int32_t number) = nullptr;
  const void* context = nullptr;
  std::int32_t count = 0;

  const void* operator[](std::int32_t number) const { return at(context, number); }
};

// The target may be one of the operands, but may not overlap them otherwise. Any alignment.
using SumKernel = void (*)(void* target, const Operands& operands, std::int64_t count);

// nullptr if sums of the type are not rounded: integers. Also for types that have no sum.
SumKernel find_exact_sum(Type type);

}  // namespace unisono::arith
