// SPDX-License-Identifier: BSD-3-Clause
// SIMD kernels of minloc and maxloc. Each pair gets an integer key whose order is the order of
// preference; the operand with the smaller key is copied whole, padding included.
#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/pair_kernel.cpp"
#include "hwy/foreach_target.h"

#include <array>
#include <bit>
#include <concepts>
#include <limits>

#include "arith/kernel_table.hpp"
#include "arith/scalar.hpp"
#include "arith/stream_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
#if UNISONO_HAVE_SIMD
namespace {

// Maps the bits of a floating-point number to an integer of the same order. -0 maps as +0. A NaN
// lies below or above all numbers, as the operator requires.
template <class Location, class D, class V>
HWY_INLINE V ordered(D d, V bits) {
  using T = hn::TFromD<D>;
  constexpr T kInfinity =
      sizeof(T) == 4 ? static_cast<T>(0x7F800000) : static_cast<T>(0x7FF0000000000000);
  constexpr T kLowest = std::numeric_limits<T>::min();
  constexpr T kHighest = std::numeric_limits<T>::max();
  const V magnitude = hn::And(bits, hn::Set(d, kHighest));
  const V number = hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), hn::Set(d, kHighest)));
  const V without_minus_zero = hn::IfThenZeroElse(hn::Eq(bits, hn::Set(d, kLowest)), number);
  const V nan = hn::Set(d, std::same_as<Location, MinLoc> ? kLowest : kHighest);
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinity)), nan, without_minus_zero);
}

// A pair of 8 bytes is one 64-bit lane. Its key has the value in the upper half, complemented for
// maxloc, which reverses the order. The lower half is the index, with its sign bit flipped so that
// it compares as unsigned.
template <class Location, class T>
struct OnPair8 {
  static_assert(sizeof(Pair<T>) == 8);
  using Element = std::uint64_t;
  using Lane = std::int64_t;

  static HWY_INLINE Element scalar(Element left, Element right) {
    const bool right_wins =
        Location::takes_right(std::bit_cast<Pair<T>>(left), std::bit_cast<Pair<T>>(right));
    return right_wins ? right : left;
  }

  template <class D, class V>
  static HWY_INLINE V vector(D d, V left, V right) {
    return hn::IfThenElse(hn::Lt(key(d, right), key(d, left)), right, left);
  }

 private:
  template <class D, class V>
  static HWY_INLINE V key(D d, V pair) {
    const hn::Repartition<std::int32_t, D> d32;
    const auto halves = hn::BitCast(d32, pair);
    const auto value = value_of(d32, halves);
    const V turned = hn::BitCast(d, hn::Shuffle2301(hn::OddEven(halves, value)));
    constexpr Lane kTurn =
        std::same_as<Location, MinLoc> ? Lane{0x80000000} : static_cast<Lane>(0xFFFFFFFF80000000u);
    return hn::Xor(turned, hn::Set(d, kTurn));
  }
  template <class D, class V>
  static HWY_INLINE V value_of(D d, V halves) {
    if constexpr (std::floating_point<T>) {
      return ordered<Location>(d, halves);
    } else if constexpr (sizeof(T) == 2) {
      return hn::ShiftLeft<16>(halves);  // the padding falls out
    } else {
      return halves;
    }
  }
};

// A pair of 16 bytes is two 64-bit lanes: the value, then the index with the padding above it.
template <class Location, class T>
struct OnPair16 {
  static_assert(sizeof(Pair<T>) == 16);
  using Element = std::array<std::uint64_t, 2>;
  using Lane = std::int64_t;

  template <class D, class V>
  static HWY_INLINE V vector(D d, V left, V right) {
    const V left_key = key(d, left);
    const V right_key = key(d, right);
    const V less = hn::VecFromMask(d, hn::Lt(right_key, left_key));
    const V equal = hn::VecFromMask(d, hn::Eq(right_key, left_key));
    const V right_wins = hn::Or(hn::DupEven(less), hn::And(hn::DupEven(equal), hn::DupOdd(less)));
    return hn::IfThenElse(hn::MaskFromVec(right_wins), right, left);
  }

 private:
  template <class D, class V>
  static HWY_INLINE V key(D d, V pair) {
    V value = pair;
    if constexpr (std::floating_point<T>) value = ordered<Location>(d, pair);
    if constexpr (std::same_as<Location, MaxLoc>) value = hn::Not(value);
    return hn::OddEven(hn::ShiftLeft<32>(pair), value);
  }
};

template <template <class, class> class OnPair, class T>
void add_pair(KernelTable& table, Type type) {
  table.at(Operator::minloc, type) = kernel<OnPair<MinLoc, T>>;
  table.at(Operator::maxloc, type) = kernel<OnPair<MaxLoc, T>>;
}

}  // namespace

void add_pair_kernels(KernelTable& table) {
  add_pair<OnPair8, std::int16_t>(table, Type::int16_int32);
  add_pair<OnPair8, std::int32_t>(table, Type::int32_int32);
  add_pair<OnPair16, std::int64_t>(table, Type::int64_int32);
  add_pair<OnPair8, float>(table, Type::float32_int32);
  add_pair<OnPair16, double>(table, Type::float64_int32);
}

#else

void add_pair_kernels(KernelTable&) {}  // the reference stays

#endif
}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::arith {

void add_pair_kernels(KernelTable& table) { UNISONO_BEST_VERSION(add_pair_kernels)(table); }

}  // namespace unisono::arith
#endif
