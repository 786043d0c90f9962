// SPDX-License-Identifier: BSD-3-Clause
// The reference kernels: a loop over scalar.hpp for every operator and type. They define the result
// and serve processors without a supported vector unit. Elements are copied in and out, because
// buffers may be misaligned.
#include <cstring>

#include "arith/kernel_table.hpp"
#include "arith/scalar.hpp"

namespace unisono::arith {
namespace {

template <class Operation, class T>
void loop(void* target, const void* left, const void* right, std::int64_t count, const void*) {
  auto* t = static_cast<unsigned char*>(target);
  const auto* l = static_cast<const unsigned char*>(left);
  const auto* r = static_cast<const unsigned char*>(right);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, l + i, sizeof(T));
    std::memcpy(&b, r + i, sizeof(T));
    const T result = Operation::apply(a, b);
    std::memcpy(t + i, &result, sizeof(T));
  }
}

template <class Operation, class T>
void located_loop(void* target, const void* left, const void* right, std::int64_t count,
                  const void*) {
  auto* t = static_cast<unsigned char*>(target);
  const auto* l = static_cast<const unsigned char*>(left);
  const auto* r = static_cast<const unsigned char*>(right);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(Pair<T>);
  for (std::size_t i = 0; i < bytes; i += sizeof(Pair<T>)) {
    Pair<T> a;
    Pair<T> b;
    std::memcpy(&a, l + i, sizeof a);
    std::memcpy(&b, r + i, sizeof b);
    std::memmove(t + i, Operation::takes_right(a, b) ? r + i : l + i, sizeof(Pair<T>));
  }
}

template <class T>
constexpr void add_arithmetic(KernelTable& table, Type type) {
  table.at(Operator::sum, type) = loop<Sum, T>;
  table.at(Operator::prod, type) = loop<Prod, T>;
}

template <class T>
constexpr void add_real(KernelTable& table, Type type) {
  add_arithmetic<T>(table, type);
  table.at(Operator::min, type) = loop<Min, T>;
  table.at(Operator::max, type) = loop<Max, T>;
}

template <class T>
constexpr void add_bitwise(KernelTable& table, Type type) {
  table.at(Operator::bitwise_and, type) = loop<BitwiseAnd, T>;
  table.at(Operator::bitwise_or, type) = loop<BitwiseOr, T>;
  table.at(Operator::bitwise_xor, type) = loop<BitwiseXor, T>;
}

template <class T>
constexpr void add_integer(KernelTable& table, Type type) {
  add_real<T>(table, type);
  add_bitwise<T>(table, type);
  table.at(Operator::logical_and, type) = loop<LogicalAnd, T>;
  table.at(Operator::logical_or, type) = loop<LogicalOr, T>;
  table.at(Operator::logical_xor, type) = loop<LogicalXor, T>;
}

template <class T>
constexpr void add_pair(KernelTable& table, Type type) {
  table.at(Operator::minloc, type) = located_loop<MinLoc, T>;
  table.at(Operator::maxloc, type) = located_loop<MaxLoc, T>;
}

constexpr KernelTable reference_table() {
  KernelTable table;
  add_bitwise<std::uint8_t>(table, Type::byte);
  add_integer<std::int8_t>(table, Type::int8);
  add_integer<std::int16_t>(table, Type::int16);
  add_integer<std::int32_t>(table, Type::int32);
  add_integer<std::int64_t>(table, Type::int64);
  add_integer<std::uint8_t>(table, Type::uint8);
  add_integer<std::uint16_t>(table, Type::uint16);
  add_integer<std::uint32_t>(table, Type::uint32);
  add_integer<std::uint64_t>(table, Type::uint64);
  add_real<Float16>(table, Type::float16);
  add_real<BFloat16>(table, Type::bfloat16);
  add_real<float>(table, Type::float32);
  add_real<double>(table, Type::float64);
  add_arithmetic<Complex<float>>(table, Type::complex64);
  add_arithmetic<Complex<double>>(table, Type::complex128);
  add_pair<std::int16_t>(table, Type::int16_int32);
  add_pair<std::int32_t>(table, Type::int32_int32);
  add_pair<std::int64_t>(table, Type::int64_int32);
  add_pair<float>(table, Type::float32_int32);
  add_pair<double>(table, Type::float64_int32);
  return table;
}

constexpr KernelTable kReference = reference_table();

}  // namespace

const KernelTable& reference_kernels() { return kReference; }

Kernel find_reference_kernel(Operator op, Type type) {
  return fits(op, type) ? kReference.at(op, type) : nullptr;
}

}  // namespace unisono::arith
