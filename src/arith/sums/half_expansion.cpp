// SPDX-License-Identifier: BSD-3-Clause
// A sum is first rounded to odd as a float32 (Boldo and Melquiond 2008): a result that is not exact
// has an odd last bit, so that the shorter format never takes it for a tie. The conversions are
// those of half.hpp on registers, or the processor's (F16C).
#include "arith/sums/half_expansion.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "arith/sums/expansion.hpp"
#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/sums/half_expansion.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Highway's own conversions for SSE4 and for AVX2 without F16C do not round to nearest.
#undef UNISONO_SUMS_HAVE_F16C
#if (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3) && !defined(HWY_DISABLE_F16C)
#define UNISONO_SUMS_HAVE_F16C 1
#else
#define UNISONO_SUMS_HAVE_F16C 0
#endif

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
namespace {

template <class Half>
struct SummedHalfRows {
  Half* target;
  const Half* const* rows;
  std::int32_t count;
};

struct HalfExpansions {
  const float* sum;
  const float* rest;
  float* lost;
};

#if UNISONO_HAVE_SIMD
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

using RealVector = hn::VFromD<Reals>;
using WordVector = hn::VFromD<Words>;

template <class Half>
HWY_INLINE RealVector load_half(const Half* from) {
  const auto halves = hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(from));
#if UNISONO_SUMS_HAVE_F16C
  if constexpr (std::is_same_v<Half, Float16>) {
    return hn::PromoteTo(Reals(), hn::BitCast(hn::Rebind<hwy::float16_t, Reals>(), halves));
  }
#endif
  return HalfRegisters<Half>::widened(hn::PromoteTo(Words(), halves));
}

// Finite numbers; others become some number.
template <class Half>
HWY_INLINE void store_half(RealVector numbers, Half* to) {
  auto* const words = reinterpret_cast<std::uint16_t*>(to);
#if UNISONO_SUMS_HAVE_F16C
  if constexpr (std::is_same_v<Half, Float16>) {
    const hn::Rebind<hwy::float16_t, Reals> halves;
    hn::StoreU(hn::BitCast(Halves(), hn::DemoteTo(halves, numbers)), Halves(), words);
    return;
  }
#endif
  const auto narrow_bits = HalfRegisters<Half>::narrowed(hn::BitCast(Words(), numbers));
  hn::StoreU(hn::DemoteTo(Halves(), hn::BitCast(Integers(), narrow_bits)), Halves(), words);
}

// Knuth's addition without error.
HWY_INLINE RealVector add_registers_with_error(RealVector left, RealVector right,
                                               RealVector& error) {
  const RealVector sum = hn::Add(left, right);
  const RealVector part = hn::Sub(sum, left);
  error = hn::Add(hn::Sub(left, hn::Sub(sum, part)), hn::Sub(right, part));
  return sum;
}

// sum + rest, rounded to odd where both are finite.
HWY_INLINE RealVector rounded_to_odd(RealVector sum, RealVector rest) {
  const Words words;
  const RealVector zero = hn::Zero(Reals());
  RealVector error = zero;
  const RealVector both = add_registers_with_error(sum, rest, error);
  // Without a rest the sum stays, as -0 + 0 would be 0.
  const RealVector nearest = hn::IfThenElse(hn::Eq(rest, zero), sum, both);
  const WordVector bits = hn::BitCast(words, nearest);
  const WordVector one = hn::Set(words, 1U);
  const auto is_even = hn::Eq(hn::And(bits, one), hn::Zero(words));
  const auto rounded = hn::And(is_even, hn::RebindMask(words, hn::Ne(error, zero)));
  const WordVector signs = hn::BitCast(words, hn::Xor(error, nearest));
  const WordVector up_or_down =
      hn::Or(one, hn::BitCast(words, hn::BroadcastSignBit(hn::BitCast(Integers(), signs))));
  return hn::BitCast(Reals(), hn::Add(bits, hn::IfThenElseZero(rounded, up_or_down)));
}

// The number of elements done: all but those that fill no register.
template <class Half>
HWY_INLINE std::size_t widen_registers(float* terms, const Half* from, std::size_t count) {
  const Reals tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_half(from + i), tag, terms + i);
  return i;
}

template <class Half>
HWY_INLINE std::size_t narrow_registers(Half* sums, const HalfExpansions& all, std::size_t count,
                                        bool& all_known) {
  const Reals tag;
  const std::size_t lanes = hn::Lanes(tag);
  const RealVector zero = hn::Zero(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const RealVector sum = hn::LoadU(tag, all.sum + i);
    const RealVector rest = hn::LoadU(tag, all.rest + i);
    store_half(rounded_to_odd(sum, rest), sums + i);
    const auto is_known =
        hn::And(hn::Eq(hn::LoadU(tag, all.lost + i), zero), hn::IsFinite(hn::Add(sum, rest)));
    if (hn::AllTrue(tag, is_known)) continue;
    all_known = false;
    hn::StoreU(hn::IfThenElse(is_known, zero, hn::Set(tag, 1.0F)), tag, all.lost + i);
  }
  return i;
}

// A float16 is a multiple of 2^-24 below 2^16. Split at 2^-3, its upper part has 19 bits, its
// lower part 20. Sums of so many parts fit the 24 bits of a float32.
constexpr std::int32_t kMostSplitRows = 16;

// An exact sum of each element of a register: sum + rest. `lost` is not 0 where it is not.
HWY_INLINE void add_exactly(RealVector term, RealVector& sum, RealVector& rest, RealVector& lost) {
  RealVector error = term;
  RealVector gone = term;
  sum = add_registers_with_error(sum, term, error);
  rest = add_registers_with_error(rest, error, gone);
  lost = hn::Or(lost, gone);
}

HWY_INLINE RealVector sum_of_split_halves(const SummedHalfRows<Float16>& all, std::size_t at,
                                          RealVector& rest) {
  const Reals tag;
  const RealVector splitter = hn::Set(tag, 0x1.8p20F);
  RealVector sum = hn::Zero(tag);
  RealVector signs = hn::Set(tag, -0.0F);
  rest = hn::Zero(tag);
  for (std::int32_t row = 0; row < all.count; ++row) {
    const RealVector term = load_half(all.rows[row] + at);
    const RealVector upper = hn::Sub(hn::Add(term, splitter), splitter);
    sum = hn::Add(sum, upper);
    rest = hn::Add(rest, hn::Sub(term, upper));
    signs = hn::And(signs, term);
  }
  // A zero that only negative terms give is made of -0 alone.
  const auto is_zero = hn::Eq(hn::Add(hn::Abs(sum), hn::Abs(rest)), hn::Zero(tag));
  return hn::Or(sum, hn::IfThenElseZero(is_zero, hn::And(signs, hn::Set(tag, -0.0F))));
}

// Writes a register of sums, which the conversion rounds; mends those that are not known.
template <class Half>
HWY_INLINE void store_sums(RealVector sum, hn::Mask<Reals> is_known, Half* target, std::size_t at,
                           const Mend& mend) {
  const Reals tag;
  if (hn::AllTrue(tag, is_known)) [[likely]] {
    store_half(sum, target + at);
    return;
  }
  HWY_ALIGN Half sums[hn::MaxLanes(Reals())];
  HWY_ALIGN float known[hn::MaxLanes(Reals())];
  store_half(sum, sums);
  hn::Store(hn::IfThenElseZero(is_known, hn::Set(tag, 1.0F)), tag, known);
  for (std::size_t lane = 0; lane < hn::Lanes(tag); ++lane) {
    if (known[lane] == 0) mend.element(mend.context, at + lane, sums + lane);
  }
  std::memcpy(target + at, sums, hn::Lanes(tag) * sizeof(Half));
}

HWY_INLINE hn::Mask<Reals> is_sum_known(RealVector sum, RealVector rest, RealVector lost) {
  return hn::And(hn::Eq(lost, hn::Zero(Reals())), hn::IsFinite(hn::Add(sum, rest)));
}

// Two registers at a time: the additions to one wait for each other.
template <class Half>
HWY_INLINE std::size_t sum_half_expansions(const SummedHalfRows<Half>& all, std::size_t elements,
                                           const Mend& mend) {
  const Reals tag;
  const std::size_t lanes = hn::Lanes(tag);
  const RealVector zero = hn::Zero(tag);
  std::size_t i = 0;
  for (; i + 2 * lanes <= elements; i += 2 * lanes) {
    const std::size_t next = i + lanes;
    RealVector sum = load_half(all.rows[0] + i), next_sum = load_half(all.rows[0] + next);
    RealVector rest = zero, next_rest = zero, lost = zero, next_lost = zero;
    for (std::int32_t row = 1; row < all.count; ++row) {
      add_exactly(load_half(all.rows[row] + i), sum, rest, lost);
      add_exactly(load_half(all.rows[row] + next), next_sum, next_rest, next_lost);
    }
    store_sums(rounded_to_odd(sum, rest), is_sum_known(sum, rest, lost), all.target, i, mend);
    store_sums(rounded_to_odd(next_sum, next_rest), is_sum_known(next_sum, next_rest, next_lost),
               all.target, next, mend);
  }
  return i;
}

HWY_INLINE std::size_t sum_all_split_halves(const SummedHalfRows<Float16>& all,
                                            std::size_t elements, const Mend& mend) {
  const Reals tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    RealVector rest = hn::Zero(tag);
    const RealVector sum = sum_of_split_halves(all, i, rest);
    store_sums(rounded_to_odd(sum, rest), hn::IsFinite(hn::Add(sum, rest)), all.target, i, mend);
  }
  return i;
}

// A sum of two halves may be rounded twice: a float32 has twice their bits and two more (Figueroa
// 1995).
template <class Half>
HWY_INLINE std::size_t add_two_half_rows(const SummedHalfRows<Half>& all, std::size_t elements,
                                         const Mend& mend) {
  const Reals tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const RealVector sum = hn::Add(load_half(all.rows[0] + i), load_half(all.rows[1] + i));
    store_sums(sum, hn::IsFinite(sum), all.target, i, mend);
  }
  return i;
}

template <class Half>
HWY_INLINE std::size_t sum_half_registers(const SummedHalfRows<Half>& all, std::size_t elements,
                                          const Mend& mend) {
  if (all.count == 2) return add_two_half_rows(all, elements, mend);
  if constexpr (std::is_same_v<Half, Float16>) {
    if (all.count <= kMostSplitRows) return sum_all_split_halves(all, elements, mend);
  }
  return sum_half_expansions(all, elements, mend);
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
template <class Half>
std::size_t sum_half_registers(const SummedHalfRows<Half>&, std::size_t, const Mend&) {
  return 0;
}
#endif

// sum + rest, rounded once; false if that is infinite or NaN.
template <class Half>
HWY_INLINE bool narrow_one(Half& result, float sum, float rest) {
  float error = 0;
  float nearest = sum;
  if (rest != 0) nearest = add_with_error(sum, rest, error);
  if (!std::isfinite(nearest)) return false;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (nearest > 0) ? 1U : ~0U;
  result = narrow<Half>(std::bit_cast<float>(bits));
  return true;
}

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
    if (all.lost[i] == 0 && narrow_one(sums[i], all.sum[i], all.rest[i])) continue;
    all.lost[i] = 1;
    all_known = false;
  }
  return all_known;
}

template <class Half>
HWY_INLINE void sum_all_halves(const SummedHalfRows<Half>& all, std::size_t elements,
                               const Mend& mend) {
  for (std::size_t i = sum_half_registers(all, elements, mend); i < elements; ++i) {
    float sum = to_float32(all.rows[0][i]);
    float rest = 0;
    bool is_exact = true;
    for (std::int32_t row = 1; row < all.count; ++row) {
      float error = 0;
      float lost = 0;
      sum = add_with_error(sum, to_float32(all.rows[row][i]), error);
      rest = add_with_error(rest, error, lost);
      is_exact = is_exact && lost == 0;
    }
    Half result{};
    if (!narrow_one(result, sum, rest) || !is_exact) mend.element(mend.context, i, &result);
    all.target[i] = result;
  }
}

}  // namespace

void sum_f16_rows(Float16* target, const Float16* const* rows, std::int32_t count,
                  std::size_t elements, const Mend& mend) {
  sum_all_halves<Float16>({target, rows, count}, elements, mend);
}
void sum_bf16_rows(BFloat16* target, const BFloat16* const* rows, std::int32_t count,
                   std::size_t elements, const Mend& mend) {
  sum_all_halves<BFloat16>({target, rows, count}, elements, mend);
}

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

void sum_rows(Float16* target, const Float16* const* rows, std::int32_t count, std::size_t elements,
              const Mend& mend) {
  UNISONO_BEST_VERSION(sum_f16_rows)(target, rows, count, elements, mend);
}
void sum_rows(BFloat16* target, const BFloat16* const* rows, std::int32_t count,
              std::size_t elements, const Mend& mend) {
  UNISONO_BEST_VERSION(sum_bf16_rows)(target, rows, count, elements, mend);
}

void widen(float* terms, const Float16* from, std::size_t count) {
  UNISONO_BEST_VERSION(widen_f16)(terms, from, count);
}
void widen(float* terms, const BFloat16* from, std::size_t count) {
  UNISONO_BEST_VERSION(widen_bf16)(terms, from, count);
}
bool narrow_expansions(Float16* sums, const float* sum, const float* rest, float* lost,
                       std::size_t count) {
  return UNISONO_BEST_VERSION(narrow_f16)(sums, sum, rest, lost, count);
}
bool narrow_expansions(BFloat16* sums, const float* sum, const float* rest, float* lost,
                       std::size_t count) {
  return UNISONO_BEST_VERSION(narrow_bf16)(sums, sum, rest, lost, count);
}

}  // namespace unisono::arith
#endif
