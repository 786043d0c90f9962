// SPDX-License-Identifier: BSD-3-Clause
// One kernel per operator and type, for one instruction set, and how the table is filled: it
// starts as the reference kernels, then each family of SIMD kernels (one file each, compiled once
// per Highway target) puts its own in. For arith/ and its tests; others call find_kernel.
#pragma once

#include <array>
#include <cstddef>

#include "arith/kernel.hpp"

namespace unisono::arith {

struct KernelTable {
  const char* target = "SCALAR";
  std::array<std::array<Kernel, kTypeCount>, kOperatorCount> kernels{};  // nullptr where !fits

  constexpr Kernel& at(Operator op, Type type) {
    return kernels[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
  }
  constexpr Kernel at(Operator op, Type type) const {
    return kernels[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
  }
};

const KernelTable& reference_kernels();

// The kernels of base::instruction_set().
KernelTable best_kernels();

// Each calls its version for base::instruction_set().
void add_integer_kernels(KernelTable& table);
void add_float_kernels(KernelTable& table);  // float32, float64 and the complex types; sets target
void add_half_kernels(KernelTable& table);
void add_pair_kernels(KernelTable& table);

}  // namespace unisono::arith
