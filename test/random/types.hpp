// SPDX-License-Identifier: BSD-3-Clause
// The element types and operators of random programs: all that are built in, opaque ones of many
// sizes, and two operators of the user that work on the bytes of any type. A program names them by
// index, since the library numbers its own. For tests only; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "arith/type.hpp"
#include "harness/elements.hpp"
#include "unisono/unisono.h"

namespace unisono::test::programs {

struct OwnType {
  std::size_t size, alignment;
};
inline constexpr std::array<OwnType, 8> kOwnTypes = {
    {{1, 1}, {3, 1}, {12, 4}, {16, 8}, {24, 8}, {64, 64}, {129, 1}, {4096, 32}}};
inline constexpr int kBuiltIn = harness::kTypes;
inline constexpr int kAllTypes = kBuiltIn + static_cast<int>(kOwnTypes.size());

// Operators behind those that are built in.
inline constexpr int kOwnOrdered = harness::kOperators;
inline constexpr int kOwnCommutative = kOwnOrdered + 1;

inline const OwnType& own_type(int type) {
  return kOwnTypes[static_cast<std::size_t>(type - kBuiltIn)];
}
inline std::size_t size_of_type(int type) {
  return type < kBuiltIn ? harness::size_of(type) : own_type(type).size;
}
inline std::size_t alignment_of_type(int type) {
  if (type >= kBuiltIn) return own_type(type).alignment;
  if (type == UNISONO_INT16_INT32) return 4;
  return std::min<std::size_t>(harness::size_of(harness::component(type)), 8);
}

inline bool is_own_operator(int op) { return op >= kOwnOrdered; }

// An affine map modulo 256 by its first byte, the factor, and an offset in each other one. It does
// not commute, and odd factors lose nothing.
inline void compose_bytes(void* target, const void* left, const void* right, std::int64_t count,
                          std::size_t size) {
  auto* to = static_cast<std::uint8_t*>(target);
  const auto* x = static_cast<const std::uint8_t*>(left);
  const auto* y = static_cast<const std::uint8_t*>(right);
  for (std::int64_t i = 0; i < count; ++i, to += size, x += size, y += size) {
    const std::uint8_t factor = x[0];
    const auto first = static_cast<std::uint8_t>(factor * y[0]);
    for (std::size_t j = 1; j < size; ++j) to[j] = static_cast<std::uint8_t>(factor * y[j] + x[j]);
    to[0] = first;
  }
}

inline void add_bytes(void* target, const void* left, const void* right, std::int64_t count,
                      std::size_t size) {
  auto* to = static_cast<std::uint8_t*>(target);
  const auto* x = static_cast<const std::uint8_t*>(left);
  const auto* y = static_cast<const std::uint8_t*>(right);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) * size; ++i) {
    to[i] = static_cast<std::uint8_t>(x[i] + y[i]);
  }
}

// The contract of operators: the target equals an operand, or overlaps neither.
inline bool overlaps_partly(const void* target, const void* operand, std::size_t bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(target);
  const auto b = reinterpret_cast<std::uintptr_t>(operand);
  return a != b && (a < b ? b - a : a - b) < bytes;
}

template <class Combine>
void combine_in_contract(Combine combine, void* target, const void* left, const void* right,
                         std::int64_t count, unisono_type_t type) {
  const std::size_t size = unisono_type_size(type);
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  if (overlaps_partly(target, left, bytes) || overlaps_partly(target, right, bytes)) {
    unisono_op_fail("the target overlaps an operand");
    return;
  }
  combine(target, left, right, count, size);
}

// The numbers that the library gave them. Each process makes them once, in the same order.
class OwnKinds {
 public:
  static const OwnKinds& get() {
    static const OwnKinds kinds;
    return kinds;
  }
  unisono_type_t type(int index) const {
    return index < kBuiltIn ? index : types_[static_cast<std::size_t>(index - kBuiltIn)];
  }
  unisono_op_t op(int index) const {
    if (!is_own_operator(index)) return index;
    return index == kOwnOrdered ? ordered_ : commutative_;
  }

 private:
  OwnKinds() {
    for (std::size_t i = 0; i < kOwnTypes.size(); ++i) {
      expect(unisono_type_create(kOwnTypes[i].size, kOwnTypes[i].alignment, &types_[i]));
    }
    const auto compose = [](void* target, const void* left, const void* right, std::int64_t count,
                            unisono_type_t type, void*) {
      combine_in_contract(compose_bytes, target, left, right, count, type);
    };
    const auto add = [](void* target, const void* left, const void* right, std::int64_t count,
                        unisono_type_t type, void*) {
      combine_in_contract(add_bytes, target, left, right, count, type);
    };
    expect(unisono_op_create(compose, 0, nullptr, &ordered_));
    expect(unisono_op_create(add, 1, nullptr, &commutative_));
  }
  static void expect(int error) {
    if (error != UNISONO_OK) throw std::runtime_error(unisono_last_error());
  }

  std::array<unisono_type_t, kOwnTypes.size()> types_{};
  unisono_op_t ordered_ = 0, commutative_ = 0;
};

inline std::string name_of_type(int type) {
  if (type < kBuiltIn) return std::string(arith::type_name(static_cast<arith::Type>(type)));
  return "opaque of " + std::to_string(size_of_type(type)) + " bytes";
}

inline std::string name_of_operator(int op) {
  if (is_own_operator(op)) return op == kOwnOrdered ? "own ordered" : "own commutative";
  return std::string(arith::operator_name(static_cast<arith::Operator>(op)));
}

}  // namespace unisono::test::programs
