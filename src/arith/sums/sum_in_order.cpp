// SPDX-License-Identifier: BSD-3-Clause
// A block is summed apart from the target, which may be any of the operands.
#include "arith/sums/sum_in_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "arith/kernel.hpp"

namespace unisono::arith {
namespace {

constexpr std::int64_t kOrderedBlockBytes = 4096;  // stays in the first cache

template <Type kType>
void sum_in_order(void* target, const Operands& operands, std::int64_t count) {
  static const Kernel add = find_kernel(Operator::sum, kType);
  static const auto element = static_cast<std::int64_t>(type_size(kType));
  alignas(64) std::byte block[kOrderedBlockBytes];
  const std::int64_t most = kOrderedBlockBytes / element;
  for (std::int64_t from = 0; from < count; from += most) {
    const std::int64_t elements = std::min(most, count - from);
    const auto part = [&](std::int32_t operand) {
      return static_cast<const std::byte*>(operands[operand]) + from * element;
    };
    const std::byte* sum = part(0);
    for (std::int32_t i = 1; i < operands.count; ++i) {
      add(block, sum, part(i), elements, nullptr);
      sum = block;
    }
    std::memmove(static_cast<std::byte*>(target) + from * element, sum,
                 static_cast<std::size_t>(elements * element));
  }
}

}  // namespace

SumKernel find_sum_in_order(Type type) {
  if (find_exact_sum(type) == nullptr) return nullptr;
  if (type == Type::float16) return sum_in_order<Type::float16>;
  if (type == Type::bfloat16) return sum_in_order<Type::bfloat16>;
  if (type == Type::float32) return sum_in_order<Type::float32>;
  if (type == Type::float64) return sum_in_order<Type::float64>;
  if (type == Type::complex64) return sum_in_order<Type::complex64>;
  return sum_in_order<Type::complex128>;
}

}  // namespace unisono::arith
