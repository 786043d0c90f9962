// SPDX-License-Identifier: BSD-3-Clause
// Sums in order: target[i] = ((operand 0 + operand 1) + operand 2) + ..., each addition rounded as
// the kernels of the type do. The bits depend on the order of the operands, but not on where they
// lie or on how long the vectors are (NaN: as a class). No allocation, no lock, no system call; any
// thread.
#pragma once

#include "arith/sums/exact_sum.hpp"

namespace unisono::arith {

// For the types that have an exact sum; nullptr for others.
SumKernel find_sum_in_order(Type type);

}  // namespace unisono::arith
