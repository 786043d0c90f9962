// SPDX-License-Identifier: BSD-3-Clause
// SIMD kernels of float16 and bfloat16: widened to float32, calculated there, rounded back. The
// conversions are those of half.hpp on registers; float16 uses the processor's where the target has
// them (F16C, part of Highway's AVX2 and AVX3).
#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/half_kernel.cpp"
#include "hwy/foreach_target.h"

#include "arith/float_operation_inl.hpp"
#include "arith/kernel_table.hpp"
#include "arith/scalar.hpp"
#include "arith/stream_inl.hpp"

// Highway's own conversions for SSE4 and for AVX2 without F16C neither round to nearest nor
// keep NaN and infinity, so they are not used there.
#undef UNISONO_ARITH_HAVE_F16C
#if (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3) && !defined(HWY_DISABLE_F16C)
#define UNISONO_ARITH_HAVE_F16C 1
#else
#define UNISONO_ARITH_HAVE_F16C 0
#endif

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
#if UNISONO_HAVE_SIMD
namespace {

// A format provides the even and the odd 16-bit lanes of a register, widened to float32, and the
// way back. d is the tag of 32-bit unsigned lanes.

struct FormatBFloat16 {
  template <class D, class V>
  static HWY_INLINE auto even(D d, V v) {
    return hn::BitCast(hn::RebindToFloat<D>(), hn::ShiftLeft<16>(hn::BitCast(d, v)));
  }
  template <class D, class V>
  static HWY_INLINE auto odd(D d, V v) {
    return hn::BitCast(hn::RebindToFloat<D>(), hn::And(hn::BitCast(d, v), hn::Set(d, 0xFFFF0000u)));
  }
  template <class D, class V>
  static HWY_INLINE hn::VFromD<D> pack(D d, V even, V odd) {
    const auto upper = hn::Set(d, 0xFFFF0000u);
    return hn::Or(hn::ShiftRight<16>(rounded(d, even)), hn::And(rounded(d, odd), upper));
  }

 private:
  // NaNs need no special case. The lower half of an operand's or the processor's NaN is zero, so
  // the rounding carries nothing into the upper half.
  template <class D, class V>
  static HWY_INLINE hn::VFromD<D> rounded(D d, V value) {
    const auto bits = hn::BitCast(d, value);
    const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    return hn::Add(bits, hn::Add(last, hn::Set(d, 0x7FFFu)));
  }
};

struct FormatFloat16 {
  template <class D, class V>
  static HWY_INLINE auto even(D d, V v) {
    return widened(d, hn::And(hn::BitCast(d, v), hn::Set(d, 0xFFFFu)));
  }
  template <class D, class V>
  static HWY_INLINE auto odd(D d, V v) {
    return widened(d, hn::ShiftRight<16>(hn::BitCast(d, v)));
  }
  template <class D, class V>
  static HWY_INLINE hn::VFromD<D> pack(D d, V even, V odd) {
    return hn::Or(narrowed(d, even), hn::ShiftLeft<16>(narrowed(d, odd)));
  }

 private:
  // Signed comparisons below: magnitudes are positive, and not every target compares unsigned.
  template <class D, class V>
  static HWY_INLINE auto widened(D d, V half) {
    const hn::RebindToSigned<D> di;
    const hn::RebindToFloat<D> df;
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000u)));
    const auto magnitude = hn::BitCast(di, hn::And(half, hn::Set(d, 0x7FFFu)));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(di, 0x38000000));
    const auto special = hn::Or(shifted, hn::Set(di, 0x7F800000));
    const auto subnormal =
        hn::BitCast(di, hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, 0x1p-24f)));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x0400)), subnormal, normal);
    const auto result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7BFF)), special, finite);
    return hn::BitCast(df, hn::Or(hn::BitCast(d, result), sign));
  }

  template <class D, class V>
  static HWY_INLINE hn::VFromD<D> narrowed(D d, V value) {
    const hn::RebindToSigned<D> di;
    const hn::RebindToFloat<D> df;
    const auto bits = hn::BitCast(d, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
    const auto magnitude = hn::BitCast(di, hn::And(bits, hn::Set(d, 0x7FFFFFFFu)));
    const auto last = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
    const auto rounded =
        hn::ShiftRight<13>(hn::Add(magnitude, hn::Sub(last, hn::Set(di, 0x38000000 - 0xFFF))));
    const auto normal = hn::Min(rounded, hn::Set(di, 0x7C00));
    const auto half = hn::Set(df, 0.5f);
    const auto subnormal =
        hn::Sub(hn::BitCast(di, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(di, half));
    const auto number =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)), subnormal, normal);
    const auto result =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7F800000)), hn::Set(di, 0x7E00), number);
    return hn::Or(hn::BitCast(d, result), sign);
  }
};

template <class FloatOperation, class Format, class D, class V>
HWY_INLINE V by_even_and_odd(D d, V a, V b) {
  const hn::RepartitionToWide<D> d32;
  const auto even = FloatOperation::apply(Format::even(d32, a), Format::even(d32, b));
  const auto odd = FloatOperation::apply(Format::odd(d32, a), Format::odd(d32, b));
  return hn::BitCast(d, Format::pack(d32, even, odd));
}

#if UNISONO_ARITH_HAVE_F16C
template <class FloatOperation, class D, class V>
HWY_INLINE V by_f16c(D d, V a, V b) {
  const hn::Half<D> half;
  const hn::Rebind<hwy::float16_t, hn::Half<D>> half16;
  const hn::Rebind<float, hn::Half<D>> wide;
  const auto widen = [&](auto v) HWY_ATTR { return hn::PromoteTo(wide, hn::BitCast(half16, v)); };
  const auto narrow = [&](auto v) HWY_ATTR { return hn::BitCast(half, hn::DemoteTo(half16, v)); };
  const auto lower =
      FloatOperation::apply(widen(hn::LowerHalf(half, a)), widen(hn::LowerHalf(half, b)));
  const auto upper =
      FloatOperation::apply(widen(hn::UpperHalf(half, a)), widen(hn::UpperHalf(half, b)));
  return hn::Combine(d, narrow(upper), narrow(lower));
}
#endif

template <class FloatOperation>
struct OnBFloat16 {
  using Element = BFloat16;
  using Lane = std::uint16_t;
  static HWY_INLINE Element scalar(Element a, Element b) {
    return FloatOperation::Scalar::apply(a, b);
  }
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    return by_even_and_odd<FloatOperation, FormatBFloat16>(d, a, b);
  }
};

template <class FloatOperation>
struct OnFloat16 {
  using Element = Float16;
  using Lane = std::uint16_t;
#if UNISONO_ARITH_HAVE_F16C
  // A register of one number: three conversions in plain integer code would take twice as long.
  static HWY_INLINE Element scalar(Element a, Element b) {
    const hn::CappedTag<Lane, 8> d;
    return {hn::GetLane(vector(d, hn::Set(d, a.bits), hn::Set(d, b.bits)))};
  }
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    return by_f16c<FloatOperation>(d, a, b);
  }
#else
  static HWY_INLINE Element scalar(Element a, Element b) {
    return FloatOperation::Scalar::apply(a, b);
  }
  template <class D, class V>
  static HWY_INLINE V vector(D d, V a, V b) {
    return by_even_and_odd<FloatOperation, FormatFloat16>(d, a, b);
  }
#endif
};

template <template <class> class OnFormat>
void add_real(KernelTable& table, Type type) {
  table.at(Operator::sum, type) = kernel<OnFormat<FloatSum>>;
  table.at(Operator::prod, type) = kernel<OnFormat<FloatProd>>;
  table.at(Operator::min, type) = kernel<OnFormat<FloatMin>>;
  table.at(Operator::max, type) = kernel<OnFormat<FloatMax>>;
}

}  // namespace

void add_half_kernels(KernelTable& table) {
  add_real<OnFloat16>(table, Type::float16);
  add_real<OnBFloat16>(table, Type::bfloat16);
}

#else

void add_half_kernels(KernelTable&) {}  // the reference stays

#endif
}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::arith {

void add_half_kernels(KernelTable& table) { UNISONO_BEST_VERSION(add_half_kernels)(table); }

}  // namespace unisono::arith
#endif
