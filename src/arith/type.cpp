// SPDX-License-Identifier: BSD-3-Clause
#include "arith/type.hpp"

#include <algorithm>
#include <array>

#include "arith/scalar.hpp"
#include "base/check.hpp"

namespace unisono::arith {
namespace {

enum class TypeClass : std::uint8_t { bytes, integer, real, complex, pair };

struct TypeRow {
  std::string_view name;
  std::size_t size;
  std::size_t alignment;
  TypeClass type_class;
};

template <class T>
constexpr TypeRow row(std::string_view name, TypeClass type_class) {
  return {name, sizeof(T), alignof(T), type_class};
}

// In the order of the enumerators.
constexpr std::array<TypeRow, kTypeCount> kTypes = {
    row<std::uint8_t>("byte", TypeClass::bytes),
    row<std::int8_t>("int8", TypeClass::integer),
    row<std::int16_t>("int16", TypeClass::integer),
    row<std::int32_t>("int32", TypeClass::integer),
    row<std::int64_t>("int64", TypeClass::integer),
    row<std::uint8_t>("uint8", TypeClass::integer),
    row<std::uint16_t>("uint16", TypeClass::integer),
    row<std::uint32_t>("uint32", TypeClass::integer),
    row<std::uint64_t>("uint64", TypeClass::integer),
    row<Float16>("float16", TypeClass::real),
    row<BFloat16>("bfloat16", TypeClass::real),
    row<float>("float32", TypeClass::real),
    row<double>("float64", TypeClass::real),
    row<Complex<float>>("complex64", TypeClass::complex),
    row<Complex<double>>("complex128", TypeClass::complex),
    row<Pair<std::int16_t>>("int16_int32", TypeClass::pair),
    row<Pair<std::int32_t>>("int32_int32", TypeClass::pair),
    row<Pair<std::int64_t>>("int64_int32", TypeClass::pair),
    row<Pair<float>>("float32_int32", TypeClass::pair),
    row<Pair<double>>("float64_int32", TypeClass::pair),
};

constexpr std::array<std::string_view, kOperatorCount> kOperatorNames = {
    "sum",         "prod",        "min",        "max",         "logical_and", "logical_or",
    "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "minloc",      "maxloc",
};

const TypeRow& type_row(Type type) {
  UNISONO_CHECK(is_valid(type), "unknown datatype");
  return kTypes[static_cast<std::size_t>(type)];
}

bool takes(Operator op, TypeClass c) {
  switch (op) {
    case Operator::sum:
    case Operator::prod:
      return c == TypeClass::integer || c == TypeClass::real || c == TypeClass::complex;
    case Operator::min:
    case Operator::max:
      return c == TypeClass::integer || c == TypeClass::real;
    case Operator::logical_and:
    case Operator::logical_or:
    case Operator::logical_xor:
      return c == TypeClass::integer;
    case Operator::bitwise_and:
    case Operator::bitwise_or:
    case Operator::bitwise_xor:
      return c == TypeClass::integer || c == TypeClass::bytes;
    case Operator::minloc:
    case Operator::maxloc:
      return c == TypeClass::pair;
  }
  return false;
}

}  // namespace

bool is_valid(Type type) {
  const auto number = static_cast<std::int32_t>(type);
  return number >= 0 && number < kTypeCount;
}

bool is_valid(Operator op) {
  const auto number = static_cast<std::int32_t>(op);
  return number >= 0 && number < kOperatorCount;
}

std::size_t type_size(Type type) { return type_row(type).size; }
std::size_t type_alignment(Type type) { return type_row(type).alignment; }
std::string_view type_name(Type type) { return type_row(type).name; }

std::string_view operator_name(Operator op) {
  UNISONO_CHECK(is_valid(op), "unknown operator");
  return kOperatorNames[static_cast<std::size_t>(op)];
}

std::optional<Type> type_from_name(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [name](const TypeRow& candidate) {
    return candidate.name == name;
  });
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<Type>(found - kTypes.begin());
}

std::optional<Operator> operator_from_name(std::string_view name) {
  const auto found = std::find(kOperatorNames.begin(), kOperatorNames.end(), name);
  if (found == kOperatorNames.end()) return std::nullopt;
  return static_cast<Operator>(found - kOperatorNames.begin());
}

bool fits(Operator op, Type type) {
  return is_valid(op) && is_valid(type) && takes(op, type_row(type).type_class);
}

}  // namespace unisono::arith
