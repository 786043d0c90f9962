// SPDX-License-Identifier: BSD-3-Clause
#include "arith/kernel.hpp"

#include "arith/kernel_table.hpp"

namespace unisono::arith {
namespace {

const KernelTable& chosen_kernels() {
  static const KernelTable table = best_kernels();
  return table;
}

}  // namespace

KernelTable best_kernels() {
  KernelTable table = reference_kernels();
  add_integer_kernels(table);
  add_float_kernels(table);
  add_half_kernels(table);
  add_pair_kernels(table);
  return table;
}

Kernel find_kernel(Operator op, Type type) {
  return fits(op, type) ? chosen_kernels().at(op, type) : nullptr;
}

const char* kernel_target() { return chosen_kernels().target; }

}  // namespace unisono::arith
