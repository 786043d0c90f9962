// SPDX-License-Identifier: BSD-3-Clause
// Datatypes and operators, and which go together. The numbers are those of the C ABI (unisono.h;
// api/ asserts that they agree). Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace unisono::arith {

enum class Type : std::int32_t {
  byte = 0,  // moved and compared bitwise only
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  uint16 = 6,
  uint32 = 7,
  uint64 = 8,
  float16 = 9,
  bfloat16 = 10,
  float32 = 11,
  float64 = 12,
  complex64 = 13,   // two float32
  complex128 = 14,  // two float64
  // (value, index) pairs for minloc and maxloc, laid out as the C struct {value; int32_t index;}
  int16_int32 = 15,
  int32_int32 = 16,
  int64_int32 = 17,
  float32_int32 = 18,
  float64_int32 = 19,
};
inline constexpr int kTypeCount = 20;

enum class Operator : std::int32_t {
  sum = 0,
  prod = 1,
  min = 2,
  max = 3,
  logical_and = 4,
  logical_or = 5,
  logical_xor = 6,
  bitwise_and = 7,
  bitwise_or = 8,
  bitwise_xor = 9,
  minloc = 10,
  maxloc = 11,
};
inline constexpr int kOperatorCount = 12;

// Whether the number is one of the enumerators: for values that come from outside.
bool is_valid(Type type);
bool is_valid(Operator op);

// Bytes; those of the C type. An invalid enumerator stops the process here and in the names.
std::size_t type_size(Type type);
std::size_t type_alignment(Type type);

// The enumerator as it is spelled above, e.g. "float32", "logical_and"; and back.
std::string_view type_name(Type type);
std::string_view operator_name(Operator op);
std::optional<Type> type_from_name(std::string_view name);
std::optional<Operator> operator_from_name(std::string_view name);

// Whether the operator is defined on the type. sum, prod: all numbers; min, max: real numbers;
// logical: integers, byte excluded; bitwise: integers and byte; minloc, maxloc: pairs. false for
// invalid enumerators.
bool fits(Operator op, Type type);

}  // namespace unisono::arith
