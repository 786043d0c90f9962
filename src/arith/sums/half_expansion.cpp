// SPDX-License-Identifier: BSD-3-Clause
// A sum is first rounded to odd as a float32 (Boldo and Melquiond 2008): a result that is not exact
// has an odd last bit, so that the shorter format never takes it for a tie. The conversions are
// those of half.hpp on registers.
#include "arith/sums/half_expansion.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "arith/simd_target.hpp"
#include "arith/sums/expansion.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/sums/half_expansion.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
namespace {

struct HalfExpansions {
  const float* sum;
  const float* rest;
  float* lost;
};

#if UNISONO_ARITH_HAVE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

using Reals = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Reals>;
using Integers = hn::RebindToSigned<Reals>;
using Halves = hn::Rebind<std::uint16_t, Reals>;

template <class Half>
struct HalfRegisters;

template <>
struct HalfRegisters<BFloat16> {
  static HWY_INLINE hn::VFromD<Reals> widened(hn::VFromD<Words> half) {
    return hn::BitCast(Reals(), hn::ShiftLeft<16>(half));
  }
  static HWY_INLINE hn::VFromD<Words> narrowed(hn::VFromD<Words> bits) {
    const Words d;
    const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
    return hn::ShiftRight<16>(hn::Add(bits, hn::Add(last, hn::Set(d, 0x7FFFU))));
  }
};

// Signed comparisons: magnitudes are positive, and not every target compares unsigned.
template <>
struct HalfRegisters<Float16> {
  static HWY_INLINE hn::VFromD<Reals> widened(hn::VFromD<Words> half) {
    const Words d;
    const Integers di;
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000U)));
    const auto magnitude = hn::BitCast(di, hn::And(half, hn::Set(d, 0x7FFFU)));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(di, 0x38000000));
    const auto special = hn::Or(shifted, hn::Set(di, 0x7F800000));
    const auto subnormal =
        hn::BitCast(di, hn::Mul(hn::ConvertTo(Reals(), magnitude), hn::Set(Reals(), 0x1p-24F)));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x0400)), subnormal, normal);
    const auto result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7BFF)), special, finite);
    return hn::BitCast(Reals(), hn::Or(hn::BitCast(d, result), sign));
  }
  static HWY_INLINE hn::VFromD<Words> narrowed(hn::VFromD<Words> bits) {
    const Words d;
    const Integers di;
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000U));
    const auto magnitude = hn::BitCast(di, hn::And(bits, hn::Set(d, 0x7FFFFFFFU)));
    const auto last = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
    const auto rounded =
        hn::ShiftRight<13>(hn::Add(magnitude, hn::Sub(last, hn::Set(di, 0x38000000 - 0xFFF))));
    const auto normal = hn::Min(rounded, hn::Set(di, 0x7C00));
    const auto half = hn::Set(Reals(), 0.5F);
    const auto subnormal = hn::Sub(hn::BitCast(di, hn::Add(hn::BitCast(Reals(), magnitude), half)),
                                   hn::BitCast(di, half));
    const auto number =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)), subnormal, normal);
    return hn::Or(hn::BitCast(d, number), sign);
  }
};

// The number of elements done: all but those that fill no register.
template <class Half>
HWY_INLINE std::size_t widen_registers(float* terms, const Half* from, std::size_t count) {
  const Reals tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto halves = hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(from + i));
    hn::StoreU(HalfRegisters<Half>::widened(hn::PromoteTo(Words(), halves)), tag, terms + i);
  }
  return i;
}

template <class Half>
HWY_INLINE std::size_t narrow_registers(Half* sums, const HalfExpansions& all, std::size_t count,
                                        bool& all_known) {
  const Reals tag;
  const Words words;
  using V = hn::VFromD<Reals>;
  const std::size_t lanes = hn::Lanes(tag);
  const V zero = hn::Zero(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V sum = hn::LoadU(tag, all.sum + i);
    const V rest = hn::LoadU(tag, all.rest + i);
    const V both = hn::Add(sum, rest);
    const V part = hn::Sub(both, sum);
    const V error = hn::Add(hn::Sub(sum, hn::Sub(both, part)), hn::Sub(rest, part));
    // Without a rest the sum stays, as -0 + 0 would be 0.
    const V nearest = hn::IfThenElse(hn::Eq(rest, zero), sum, both);
    const auto bits = hn::BitCast(words, nearest);
    const auto one = hn::Set(words, 1U);
    const auto is_even = hn::Eq(hn::And(bits, one), hn::Zero(words));
    const auto rounded = hn::And(is_even, hn::RebindMask(words, hn::Ne(error, zero)));
    const auto signs = hn::BitCast(words, hn::Xor(error, nearest));
    const auto up_or_down =
        hn::Or(one, hn::BitCast(words, hn::BroadcastSignBit(hn::BitCast(Integers(), signs))));
    const auto odd = hn::Add(bits, hn::IfThenElseZero(rounded, up_or_down));
    const auto narrow_bits = hn::BitCast(Integers(), HalfRegisters<Half>::narrowed(odd));
    hn::StoreU(hn::DemoteTo(Halves(), narrow_bits), Halves(),
               reinterpret_cast<std::uint16_t*>(sums + i));
    const auto is_known = hn::And(hn::Eq(hn::LoadU(tag, all.lost + i), zero), hn::IsFinite(both));
    if (hn::AllTrue(tag, is_known)) continue;
    all_known = false;
    hn::StoreU(hn::IfThenElse(is_known, zero, hn::Set(tag, 1.0F)), tag, all.lost + i);
  }
  return i;
}
#else
template <class Half>
std::size_t widen_registers(float*, const Half*, std::size_t) {
  return 0;
}
template <class Half>
std::size_t narrow_registers(Half*, const HalfExpansions&, std::size_t, bool&) {
  return 0;
}
#endif

template <class Half>
HWY_INLINE void widen_all(float* terms, const Half* from, std::size_t count) {
  for (std::size_t i = widen_registers(terms, from, count); i < count; ++i) {
    Half half;
    std::memcpy(&half, from + i, sizeof half);
    terms[i] = to_float32(half);
  }
}

template <class Half>
HWY_INLINE bool narrow_all(Half* sums, const HalfExpansions& all, std::size_t count) {
  bool all_known = true;
  for (std::size_t i = narrow_registers(sums, all, count, all_known); i < count; ++i) {
    float error = 0;
    float nearest = all.sum[i];
    if (all.rest[i] != 0) nearest = add_with_error(all.sum[i], all.rest[i], error);
    if (all.lost[i] != 0 || !std::isfinite(nearest)) {
      all.lost[i] = 1;
      all_known = false;
      continue;
    }
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (nearest > 0) ? 1U : ~0U;
    sums[i] = narrow<Half>(std::bit_cast<float>(bits));
  }
  return all_known;
}

}  // namespace

void widen_f16(float* terms, const Float16* from, std::size_t count) {
  widen_all(terms, from, count);
}
void widen_bf16(float* terms, const BFloat16* from, std::size_t count) {
  widen_all(terms, from, count);
}
bool narrow_f16(Float16* sums, const float* sum, const float* rest, float* lost,
                std::size_t count) {
  return narrow_all(sums, {sum, rest, lost}, count);
}
bool narrow_bf16(BFloat16* sums, const float* sum, const float* rest, float* lost,
                 std::size_t count) {
  return narrow_all(sums, {sum, rest, lost}, count);
}

}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::arith {

HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(narrow_f16);
HWY_EXPORT(narrow_bf16);

void widen(float* terms, const Float16* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(terms, from, count);
}
void widen(float* terms, const BFloat16* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(terms, from, count);
}
bool narrow_expansions(Float16* sums, const float* sum, const float* rest, float* lost,
                       std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(narrow_f16)(sums, sum, rest, lost, count);
}
bool narrow_expansions(BFloat16* sums, const float* sum, const float* rest, float* lost,
                       std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(narrow_bf16)(sums, sum, rest, lost, count);
}

}  // namespace unisono::arith
#endif
