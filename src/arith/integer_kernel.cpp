// SPDX-License-Identifier: BSD-3-Clause
// SIMD kernels of the integer types and byte. Where signed and unsigned integers give the same
// bits, both use the kernel of the unsigned type.
#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/integer_kernel.cpp"
#include "hwy/foreach_target.h"

#include "arith/kernel_table.hpp"
#include "arith/scalar.hpp"
#include "arith/stream_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
#if UNISONO_HAVE_SIMD
namespace {

template <class T, class Scalar>
struct OnInteger {
  using Element = T;
  using Lane = T;
  static HWY_INLINE T scalar(T a, T b) { return Scalar::apply(a, b); }
};

template <class T>
struct SumOf : OnInteger<T, Sum> {
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Add(a, b);
  }
};

template <class T>
struct ProdOf : OnInteger<T, Prod> {
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    if constexpr (sizeof(T) == 1) {
      // No target multiplies bytes: multiply the even and the odd ones as 16-bit lanes.
      const hn::RepartitionToWide<D> wide;
      const auto a16 = hn::BitCast(wide, a);
      const auto b16 = hn::BitCast(wide, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(wide, 0xFF));
      const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16));
      return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
    } else {
      return hn::Mul(a, b);
    }
  }
};

template <class T>
struct MinOf : OnInteger<T, Min> {
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Min(a, b);
  }
};

template <class T>
struct MaxOf : OnInteger<T, Max> {
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Max(a, b);
  }
};

template <class T>
struct LogicalAndOf : OnInteger<T, LogicalAnd> {
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    const V zero = hn::Zero(d);
    const auto is_false = hn::Or(hn::Eq(a, zero), hn::Eq(b, zero));
    return hn::IfThenZeroElse(is_false, hn::Set(d, T{1}));
  }
};

template <class T>
struct LogicalOrOf : OnInteger<T, LogicalOr> {
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    return hn::IfThenZeroElse(hn::Eq(hn::Or(a, b), hn::Zero(d)), hn::Set(d, T{1}));
  }
};

template <class T>
struct LogicalXorOf : OnInteger<T, LogicalXor> {
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    const V zero = hn::Zero(d);
    const auto is_true = hn::Xor(hn::Eq(a, zero), hn::Eq(b, zero));
    return hn::IfThenElseZero(is_true, hn::Set(d, T{1}));
  }
};

template <class T>
struct BitwiseAndOf : OnInteger<T, BitwiseAnd> {
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::And(a, b);
  }
};

template <class T>
struct BitwiseOrOf : OnInteger<T, BitwiseOr> {
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Or(a, b);
  }
};

template <class T>
struct BitwiseXorOf : OnInteger<T, BitwiseXor> {
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class Unsigned>
void add_bitwise(KernelTable& table, Type type) {
  table.at(Operator::bitwise_and, type) = kernel<BitwiseAndOf<Unsigned>>;
  table.at(Operator::bitwise_or, type) = kernel<BitwiseOrOf<Unsigned>>;
  table.at(Operator::bitwise_xor, type) = kernel<BitwiseXorOf<Unsigned>>;
}

template <class T>
void add_integer(KernelTable& table, Type type) {
  using Unsigned = hwy::MakeUnsigned<T>;
  add_bitwise<Unsigned>(table, type);
  table.at(Operator::sum, type) = kernel<SumOf<Unsigned>>;
  table.at(Operator::prod, type) = kernel<ProdOf<Unsigned>>;
  table.at(Operator::min, type) = kernel<MinOf<T>>;
  table.at(Operator::max, type) = kernel<MaxOf<T>>;
  table.at(Operator::logical_and, type) = kernel<LogicalAndOf<Unsigned>>;
  table.at(Operator::logical_or, type) = kernel<LogicalOrOf<Unsigned>>;
  table.at(Operator::logical_xor, type) = kernel<LogicalXorOf<Unsigned>>;
}

}  // namespace

void add_integer_kernels(KernelTable& table) {
  add_bitwise<std::uint8_t>(table, Type::byte);
  add_integer<std::int8_t>(table, Type::int8);
  add_integer<std::int16_t>(table, Type::int16);
  add_integer<std::int32_t>(table, Type::int32);
  add_integer<std::int64_t>(table, Type::int64);
  add_integer<std::uint8_t>(table, Type::uint8);
  add_integer<std::uint16_t>(table, Type::uint16);
  add_integer<std::uint32_t>(table, Type::uint32);
  add_integer<std::uint64_t>(table, Type::uint64);
}

#else

void add_integer_kernels(KernelTable&) {}  // the reference stays

#endif
}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::arith {

void add_integer_kernels(KernelTable& table) { UNISONO_BEST_VERSION(add_integer_kernels)(table); }

}  // namespace unisono::arith
#endif
