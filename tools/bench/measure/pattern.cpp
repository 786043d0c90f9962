// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/pattern.hpp"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>

#include "arith/kernel.hpp"
#include "base/check.hpp"
#include "base/prng.hpp"

namespace unisono::tools::bench {
namespace {

using arith::Operator;
using arith::Type;

// Prime, so that no power of two shifts one phase into another.
constexpr std::int64_t kPeriod = 61;
// A row holds this many elements from any phase on: long enough for memcpy to run at full speed,
// short enough for the first-level cache. A multiple of the period.
constexpr std::int64_t kPiece = kPeriod * 16;
constexpr std::int64_t kRow = kPiece + kPeriod;
// Enumerators of Reduced.
constexpr std::size_t kReductions = 3;

// The largest whole number up to which the type represents all whole numbers exactly.
std::int64_t exact_limit(Type type) {
  switch (type) {
    case Type::int8:
      return 127;
    case Type::byte:
    case Type::uint8:
    case Type::bfloat16:
      return 255;
    case Type::float16:
      return 2047;
    case Type::int16:
    case Type::int16_int32:
      return 32767;
    case Type::uint16:
      return 65535;
    case Type::float32:
    case Type::complex64:
    case Type::float32_int32:
      return (1 << 24) - 1;
    case Type::int32:
    case Type::int32_int32:
    case Type::uint32:
    case Type::int64:
    case Type::int64_int32:
    case Type::uint64:
    case Type::float64:
    case Type::complex128:
    case Type::float64_int32:
      return 1 << 30;
  }
  return 1;
}

bool is_signed_or_floating(Type type) {
  return type != Type::byte && type != Type::uint8 && type != Type::uint16 &&
         type != Type::uint32 && type != Type::uint64;
}

std::int64_t value(Type type, Operator op, int ranks, int rank, std::int64_t index) {
  const auto seed = static_cast<std::uint64_t>(rank * kPeriod + index);
  const std::uint64_t random = base::Prng(seed).next() >> 8;
  switch (op) {
    case Operator::prod:  // signs are exact in any number; unsigned types wrap around
      if (is_signed_or_floating(type)) return random % 2 == 0 ? 1 : -1;
      return static_cast<std::int64_t>(random % 64) * 2 + 1;
    case Operator::logical_and:
    case Operator::logical_or:
    case Operator::logical_xor:
      return static_cast<std::int64_t>(random % 2);
    case Operator::sum: {
      const std::int64_t most = std::clamp<std::int64_t>(exact_limit(type) / ranks, 1, 126);
      return static_cast<std::int64_t>(random % static_cast<std::uint64_t>(most + 1));
    }
    case Operator::min:
    case Operator::max:
    case Operator::bitwise_and:
    case Operator::bitwise_or:
    case Operator::bitwise_xor:
    case Operator::minloc:
    case Operator::maxloc:
      return static_cast<std::int64_t>(random % 127);
  }
  return 0;
}

template <class T>
void put(std::byte* at, T number) {
  std::memcpy(at, &number, sizeof number);
}

// For |number| <= 2047, where the conversion is exact.
std::uint16_t to_float16(std::int64_t number) {
  const auto sign = static_cast<std::uint32_t>(number < 0 ? 0x8000 : 0);
  const auto magnitude = static_cast<std::uint32_t>(number < 0 ? -number : number);
  if (magnitude == 0) return 0;
  const int exponent = std::bit_width(magnitude) - 1;
  const std::uint32_t fraction = (magnitude << (10 - exponent)) & 0x3ffu;
  return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(exponent + 15) << 10 |
                                    fraction);
}

// For |number| <= 255, where the conversion is exact.
std::uint16_t to_bfloat16(std::int64_t number) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16);
}

void put_as(Type type, std::int64_t number, std::byte* at) {
  switch (type) {
    case Type::byte:
    case Type::uint8:
    case Type::int8:
      return put(at, static_cast<std::uint8_t>(number));
    case Type::int16:
    case Type::uint16:
      return put(at, static_cast<std::uint16_t>(number));
    case Type::int32:
    case Type::uint32:
      return put(at, static_cast<std::uint32_t>(number));
    case Type::int64:
    case Type::uint64:
      return put(at, static_cast<std::uint64_t>(number));
    case Type::float16:
      return put(at, to_float16(number));
    case Type::bfloat16:
      return put(at, to_bfloat16(number));
    case Type::float32:
      return put(at, static_cast<float>(number));
    case Type::float64:
      return put(at, static_cast<double>(number));
    case Type::complex64:
      return put(at, std::complex<float>(static_cast<float>(number), 0));
    case Type::complex128:
      return put(at, std::complex<double>(static_cast<double>(number), 0));
    case Type::int16_int32:
    case Type::int32_int32:
    case Type::int64_int32:
    case Type::float32_int32:
    case Type::float64_int32:
      break;
  }
  UNISONO_CHECK(false, "a pattern of pairs");
}

template <class T>
bool equal_numbers(const std::byte* a, const std::byte* b) {
  T left;
  T right;
  std::memcpy(&left, a, sizeof left);
  std::memcpy(&right, b, sizeof right);
  return left == right;
}

}  // namespace

Pattern::Pattern(Type type, Operator op, int ranks, int rank)
    : type_(type),
      size_(arith::type_size(type)),
      ranks_(static_cast<std::size_t>(ranks)),
      rows_((ranks_ + kReductions) * kRow * size_) {
  const auto row_of = [this](std::size_t index) { return rows_.data() + index * kRow * size_; };
  for (int r = 0; r < ranks; ++r) {
    std::byte* at = row_of(static_cast<std::size_t>(r));
    for (std::int64_t i = 0; i < kRow; ++i, at += size_) {
      put_as(type, value(type, op, ranks, r, i % kPeriod), at);
    }
  }
  std::byte* const all = row_of(reduced_row(Reduced::all));
  std::memcpy(all, rows_.data(), kRow * size_);
  const bool fits = arith::fits(op, type);  // not byte, which has no operators
  const arith::Kernel kernel = fits ? arith::find_reference_kernel(op, type) : nullptr;
  for (int r = 0; fits && r < ranks; ++r) {
    if (r > 0) kernel(all, all, row_of(static_cast<std::size_t>(r)), kRow, nullptr);
    if (r == rank) std::memcpy(row_of(reduced_row(Reduced::upto)), all, kRow * size_);
    if (r == rank - 1) std::memcpy(row_of(reduced_row(Reduced::before)), all, kRow * size_);
  }
}

std::size_t Pattern::reduced_row(Reduced reduced) const {
  return ranks_ + static_cast<std::size_t>(reduced);
}

const std::byte* Pattern::row(std::size_t index, std::int64_t phase) const {
  return rows_.data() + (index * kRow + static_cast<std::size_t>(phase % kPeriod)) * size_;
}

void Pattern::fill(int rank, std::int64_t phase, std::int64_t count, std::byte* buffer) const {
  const std::byte* source = row(static_cast<std::size_t>(rank), phase);
  while (count > 0) {
    const std::size_t bytes = static_cast<std::size_t>(std::min(count, kPiece)) * size_;
    std::memcpy(buffer, source, bytes);
    buffer += bytes;
    count -= kPiece;
  }
}

std::int64_t Pattern::wrong(int rank, std::int64_t phase, std::int64_t count,
                            const std::byte* buffer) const {
  return wrong_in_row(static_cast<std::size_t>(rank), phase, count, buffer);
}

std::int64_t Pattern::wrong_reduced(std::int64_t phase, std::int64_t count, const std::byte* buffer,
                                    Reduced reduced) const {
  return wrong_in_row(reduced_row(reduced), phase, count, buffer);
}

std::int64_t Pattern::wrong_in_row(std::size_t index, std::int64_t phase, std::int64_t count,
                                   const std::byte* buffer) const {
  const std::byte* expected = row(index, phase);
  std::int64_t differences = 0;
  while (count > 0) {
    const auto elements = static_cast<std::size_t>(std::min(count, kPiece));
    if (std::memcmp(buffer, expected, elements * size_) != 0) {
      for (std::size_t i = 0; i < elements; ++i) {
        differences += same(buffer + i * size_, expected + i * size_) ? 0 : 1;
      }
    }
    buffer += elements * size_;
    count -= kPiece;
  }
  return differences;
}

// A product of complex numbers may have a zero of either sign; all other values must be equal in
// every bit.
bool Pattern::same(const std::byte* a, const std::byte* b) const {
  if (type_ == Type::complex64) return equal_numbers<std::complex<float>>(a, b);
  if (type_ == Type::complex128) return equal_numbers<std::complex<double>>(a, b);
  return std::memcmp(a, b, size_) == 0;
}

}  // namespace unisono::tools::bench
