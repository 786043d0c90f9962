// SPDX-License-Identifier: BSD-3-Clause
// The four operators on registers of float32 or float64, included once per Highway target by the
// kernels of the floating-point types and of the 16-bit types, which calculate in float32.
#if defined(UNISONO_ARITH_FLOAT_OPERATION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_ARITH_FLOAT_OPERATION_INL
#undef UNISONO_ARITH_FLOAT_OPERATION_INL
#else
#define UNISONO_ARITH_FLOAT_OPERATION_INL
#endif

#include "arith/scalar.hpp"
#include "base/simd/target.hpp"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {

struct FloatSum {
  using Scalar = Sum;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hwy::HWY_NAMESPACE::Add(a, b);
  }
};

struct FloatProd {
  using Scalar = Prod;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hwy::HWY_NAMESPACE::Mul(a, b);
  }
};

// Highway leaves NaN and signed zeros in Min and Max to the target, so these operators compare.
// Operands that are neither less nor greater are equal or hold a NaN. Equal ones differ at most in
// the sign of zero: OR gives the minimum, AND the maximum. OR with a NaN is a NaN.
struct FloatMin {
  using Scalar = Min;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V neither = hn::Or(a, b);
    return hn::IfThenElse(hn::Lt(a, b), a, hn::IfThenElse(hn::Lt(b, a), b, neither));
  }
};

struct FloatMax {
  using Scalar = Max;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V neither = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), hn::Or(a, b));
    return hn::IfThenElse(hn::Lt(b, a), a, hn::IfThenElse(hn::Lt(a, b), b, neither));
  }
};

}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // UNISONO_ARITH_FLOAT_OPERATION_INL
