// SPDX-License-Identifier: BSD-3-Clause
// A naive second opinion on the arithmetic: every element of every built-in type as two integers,
// with one combine() that any reader can check. Samples are chosen so that floating-point results
// are exact, and therefore the same in any order; a difference is an error, never a rounding.
// For tests only; any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "harness/scale.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// Numbers: a. Complex numbers: a + bi. Pairs: value a, index b.
struct Element {
  std::int64_t a = 0;
  std::int64_t b = 0;

  bool operator==(const Element&) const = default;
};

inline constexpr int kTypes = 20;
inline constexpr int kOperators = 12;
// The loaded value of a number that is no integer (a fraction, NaN, infinity).
inline constexpr std::int64_t kNoInteger = std::numeric_limits<std::int64_t>::min();

inline bool is_integer(unisono_type_t t) { return t >= UNISONO_INT8 && t <= UNISONO_UINT64; }
inline bool is_float(unisono_type_t t) { return t >= UNISONO_FLOAT16 && t <= UNISONO_FLOAT64; }
inline bool is_complex(unisono_type_t t) {
  return t == UNISONO_COMPLEX64 || t == UNISONO_COMPLEX128;
}
inline bool is_pair(unisono_type_t t) {
  return t >= UNISONO_INT16_INT32 && t <= UNISONO_FLOAT64_INT32;
}

inline bool fits(unisono_op_t op, unisono_type_t type) {
  if (op <= UNISONO_PROD) return is_integer(type) || is_float(type) || is_complex(type);
  if (op <= UNISONO_MAX) return is_integer(type) || is_float(type);
  if (op <= UNISONO_LOGICAL_XOR) return is_integer(type);
  if (op <= UNISONO_BITWISE_XOR) return is_integer(type) || type == UNISONO_BYTE;
  return is_pair(type);
}

struct TypedOp {
  unisono_type_t type;
  unisono_op_t op;
};

inline std::string name_of(TypedOp pair) {
  return "type " + std::to_string(pair.type) + ", operator " + std::to_string(pair.op);
}

inline std::vector<TypedOp> all_typed_ops() {
  std::vector<TypedOp> all;
  for (unisono_type_t type = 0; type < kTypes; ++type) {
    for (unisono_op_t op = 0; op < kOperators; ++op) {
      if (fits(op, type)) all.push_back({type, op});
    }
  }
  return all;
}

// A sanitizer sees the same in each kernel, whatever the number of ranks: a quarter of them there.
// Numbers of ranks with all remainders by 4, as rank_counts() has, have all together.
inline std::vector<TypedOp> typed_ops_for(int ranks) {
  std::vector<TypedOp> some;
  int number = ranks;
  for (const TypedOp pair : all_typed_ops()) {
    if (!kSanitized || number++ % 4 == 0) some.push_back(pair);
  }
  return some;
}

// The type of one component: of a complex number's parts, of a pair's value.
inline unisono_type_t component(unisono_type_t type) {
  switch (type) {
    case UNISONO_BYTE:
      return UNISONO_UINT8;
    case UNISONO_COMPLEX64:
      return UNISONO_FLOAT32;
    case UNISONO_COMPLEX128:
      return UNISONO_FLOAT64;
    case UNISONO_INT16_INT32:
      return UNISONO_INT16;
    case UNISONO_INT32_INT32:
      return UNISONO_INT32;
    case UNISONO_INT64_INT32:
      return UNISONO_INT64;
    case UNISONO_FLOAT32_INT32:
      return UNISONO_FLOAT32;
    case UNISONO_FLOAT64_INT32:
      return UNISONO_FLOAT64;
    default:
      return type;
  }
}

inline std::size_t size_of(unisono_type_t type) {
  switch (type) {
    case UNISONO_BYTE:
    case UNISONO_INT8:
    case UNISONO_UINT8:
      return 1;
    case UNISONO_INT16:
    case UNISONO_UINT16:
    case UNISONO_FLOAT16:
    case UNISONO_BFLOAT16:
      return 2;
    case UNISONO_INT32:
    case UNISONO_UINT32:
    case UNISONO_FLOAT32:
      return 4;
    case UNISONO_INT64:
    case UNISONO_UINT64:
    case UNISONO_FLOAT64:
    case UNISONO_COMPLEX64:
      return 8;
    case UNISONO_COMPLEX128:
      return 16;
    case UNISONO_INT16_INT32:
    case UNISONO_INT32_INT32:
    case UNISONO_FLOAT32_INT32:
      return 8;
    case UNISONO_INT64_INT32:
    case UNISONO_FLOAT64_INT32:
      return 16;
    default:
      return unisono_type_size(type);  // an opaque type
  }
}

// IEEE binary16 of an integer of at most 11 bits.
inline std::uint16_t half_bits(std::int64_t value) {
  if (value == 0) return 0;
  const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1;
  const std::uint64_t fraction =
      (exponent <= 10 ? magnitude << (10 - exponent) : magnitude >> (exponent - 10)) & 0x3ff;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000U : 0U) |
                                    (static_cast<unsigned>(exponent + 15) << 10) | fraction);
}

inline double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class T>
void put(void* target, T value) {
  std::memcpy(target, &value, sizeof value);
}
template <class T>
T take(const void* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

inline std::int64_t to_integer(double value) {
  if (!(std::fabs(value) < 9e18) || value != std::floor(value)) return kNoInteger;
  return static_cast<std::int64_t>(value);
}

// Integers wrap to the type's width.
inline void store_component(unisono_type_t type, void* target, std::int64_t value) {
  switch (type) {
    case UNISONO_FLOAT16:
      return put(target, half_bits(value));
    case UNISONO_BFLOAT16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      return put(target, static_cast<std::uint16_t>(bits >> 16));
    }
    case UNISONO_FLOAT32:
      return put(target, static_cast<float>(value));
    case UNISONO_FLOAT64:
      return put(target, static_cast<double>(value));
    default:
      std::memcpy(target, &value, size_of(type));  // little endian, as all we run on
  }
}

inline std::int64_t load_component(unisono_type_t type, const void* source) {
  switch (type) {
    case UNISONO_INT8:
      return take<std::int8_t>(source);
    case UNISONO_INT16:
      return take<std::int16_t>(source);
    case UNISONO_INT32:
      return take<std::int32_t>(source);
    case UNISONO_INT64:
      return take<std::int64_t>(source);
    case UNISONO_UINT8:
      return take<std::uint8_t>(source);
    case UNISONO_UINT16:
      return take<std::uint16_t>(source);
    case UNISONO_UINT32:
      return take<std::uint32_t>(source);
    case UNISONO_UINT64:
      return static_cast<std::int64_t>(take<std::uint64_t>(source));
    case UNISONO_FLOAT16:
      return to_integer(half_value(take<std::uint16_t>(source)));
    case UNISONO_BFLOAT16: {
      const auto bits = static_cast<std::uint32_t>(take<std::uint16_t>(source)) << 16;
      return to_integer(static_cast<double>(std::bit_cast<float>(bits)));
    }
    case UNISONO_FLOAT32:
      return to_integer(static_cast<double>(take<float>(source)));
    case UNISONO_FLOAT64:
      return to_integer(take<double>(source));
    default:
      return kNoInteger;
  }
}

// Where b lies: after a, as the C compiler places it.
inline std::size_t second_offset(unisono_type_t type) {
  return type == UNISONO_INT16_INT32 ? 4 : size_of(component(type));
}

inline void store(unisono_type_t type, void* target, Element element) {
  store_component(component(type), target, element.a);
  auto* second = static_cast<unsigned char*>(target) + second_offset(type);
  if (is_complex(type)) store_component(component(type), second, element.b);
  if (is_pair(type)) store_component(UNISONO_INT32, second, element.b);
}

inline Element load(unisono_type_t type, const void* source) {
  Element element{load_component(component(type), source), 0};
  const auto* second = static_cast<const unsigned char*>(source) + second_offset(type);
  if (is_complex(type)) element.b = load_component(component(type), second);
  if (is_pair(type)) element.b = load_component(UNISONO_INT32, second);
  return element;
}

inline std::int64_t wrapping_add(std::int64_t x, std::int64_t y) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
}
inline std::int64_t wrapping_multiply(std::int64_t x, std::int64_t y) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
}

inline bool less(unisono_type_t type, std::int64_t x, std::int64_t y) {
  if (type == UNISONO_UINT64) return static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(y);
  return x < y;
}

// minloc and maxloc: of equal values the smaller index.
inline Element combine_pairs(bool greater, unisono_type_t type, Element x, Element y) {
  if (x.a == y.a) return {x.a, x.b < y.b ? x.b : y.b};
  return less(component(type), x.a, y.a) != greater ? x : y;
}

inline Element combine_exactly(unisono_op_t op, unisono_type_t type, Element x, Element y) {
  switch (op) {
    case UNISONO_SUM:
      return {wrapping_add(x.a, y.a), wrapping_add(x.b, y.b)};
    case UNISONO_PROD:
      if (is_complex(type)) return {x.a * y.a - x.b * y.b, x.a * y.b + x.b * y.a};
      return {wrapping_multiply(x.a, y.a), 0};
    case UNISONO_MIN:
      return less(type, y.a, x.a) ? y : x;
    case UNISONO_MAX:
      return less(type, x.a, y.a) ? y : x;
    case UNISONO_LOGICAL_AND:
      return {x.a != 0 && y.a != 0, 0};
    case UNISONO_LOGICAL_OR:
      return {x.a != 0 || y.a != 0, 0};
    case UNISONO_LOGICAL_XOR:
      return {(x.a != 0) != (y.a != 0), 0};
    case UNISONO_BITWISE_AND:
      return {x.a & y.a, 0};
    case UNISONO_BITWISE_OR:
      return {x.a | y.a, 0};
    case UNISONO_BITWISE_XOR:
      return {x.a ^ y.a, 0};
    case UNISONO_MINLOC:
      return combine_pairs(false, type, x, y);
    case UNISONO_MAXLOC:
      return combine_pairs(true, type, x, y);
    default:
      return {kNoInteger, kNoInteger};
  }
}

// The element as the type can hold it.
inline Element narrowed(unisono_type_t type, Element element) {
  unsigned char bytes[16] = {};
  store(type, bytes, element);
  return load(type, bytes);
}

inline Element combine(unisono_op_t op, unisono_type_t type, Element left, Element right) {
  return narrowed(type, combine_exactly(op, type, left, right));
}

// splitmix64's finisher.
inline std::uint64_t mixed(std::uint64_t rank, std::uint64_t index) {
  std::uint64_t z = (rank + 1) * 0x9e3779b97f4a7c15U + index * 0xd1342543de82ef95U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// Factors whose product over a hundred ranks is still exact in float16: units, and few twos.
inline Element sample_factor(unisono_type_t type, int rank, std::uint64_t bits) {
  if (rank % 8 == 0 && bits % 2 == 0) {
    return is_complex(type) ? Element{1, 1} : Element{2, 0};
  }
  const std::int64_t sign = (bits & 4) != 0 ? 1 : -1;
  if (is_complex(type) && (bits & 8) != 0) return {0, sign};
  return {sign, 0};
}

// The element of rank `rank` at `index`: wide in integers, small where floating point must be
// exact.
inline Element sample(TypedOp pair, int rank, std::int64_t index) {
  const std::uint64_t bits =
      mixed(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index));
  const auto small = static_cast<std::int64_t>(bits % 7) - 3;
  const auto wide = static_cast<std::int64_t>(bits >> 3);
  const bool floating = is_float(component(pair.type));
  if (is_pair(pair.type)) return {small, static_cast<std::int64_t>((bits >> 20) % 1000)};
  if (floating && pair.op == UNISONO_PROD) return sample_factor(pair.type, rank, bits);
  if (is_complex(pair.type)) return {small, static_cast<std::int64_t>((bits >> 20) % 5) - 2};
  if (floating) return {small, 0};
  if (pair.op == UNISONO_LOGICAL_AND && bits % 40 != 0) {
    return narrowed(pair.type, {wide | 1, 0});
  }
  if (pair.op >= UNISONO_LOGICAL_AND && pair.op <= UNISONO_LOGICAL_XOR && bits % 5 < 2) return {};
  if (pair.op == UNISONO_PROD) return narrowed(pair.type, {wide | 1, 0});  // even ones die out
  return narrowed(pair.type, {wide, 0});
}

// The loops over long vectors, which elements.cpp has, because it is optimized in each build.

// The samples of ranks 0 .. ranks-1 combined from left to right, for every index below count.
std::vector<Element> reference(TypedOp pair, int ranks, std::int64_t count);

// Stores the samples 0 .. count - 1 of `rank` one after the other.
void store_samples(TypedOp pair, int rank, std::int64_t count, void* target);

// The index of the first of the elements in memory that is not as wanted; their number if all are.
std::int64_t first_unlike(unisono_type_t type, const void* found, std::span<const Element> wanted);
std::int64_t first_unlike_sample(TypedOp pair, int rank, const void* found, std::int64_t count);

}  // namespace unisono::harness
