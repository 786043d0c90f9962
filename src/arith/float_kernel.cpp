// SPDX-License-Identifier: BSD-3-Clause
// SIMD kernels of float32, float64 and the complex types.
#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/float_kernel.cpp"
#include "hwy/foreach_target.h"

#include "arith/float_operation_inl.hpp"
#include "arith/kernel_table.hpp"
#include "arith/scalar.hpp"
#include "arith/stream_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
#if UNISONO_HAVE_SIMD
namespace {

template <class T, class FloatOperation>
struct OnFloat {
  using Element = T;
  using Lane = T;
  static HWY_INLINE T scalar(T a, T b) { return FloatOperation::Scalar::apply(a, b); }
  template <class D, class V>
  static HWY_INLINE V vector(D, V a, V b) {
    return FloatOperation::apply(a, b);
  }
};

template <class T>
struct ComplexProd {
  using Element = Complex<T>;
  using Lane = T;
  static HWY_INLINE Element scalar(Element a, Element b) { return Prod::apply(a, b); }
  // (re, im) = (ac - bd, ad + bc): the lanes [ac, ad] and [bd, bc], the latter with bd negated,
  // which is exact, are added.
  template <class D, class V>
  static HWY_INLINE V vector(D d, V left, V right) {
    const V ac_ad = hn::Mul(hn::DupEven(left), right);
    const V bd_bc = hn::Mul(hn::DupOdd(left), hn::Reverse2(d, right));
    const V sign_of_re = hn::OddEven(hn::Zero(d), hn::SignBit(d));
    return hn::Add(ac_ad, hn::Xor(bd_bc, sign_of_re));
  }
};

// A sum of complex numbers is one of twice as many real ones.
template <class T>
void complex_sum(void* target, const void* left, const void* right, std::int64_t count,
                 const void* context) {
  kernel<OnFloat<T, FloatSum>>(target, left, right, 2 * count, context);
}

template <class T>
void add_real(KernelTable& table, Type type) {
  table.at(Operator::sum, type) = kernel<OnFloat<T, FloatSum>>;
  table.at(Operator::prod, type) = kernel<OnFloat<T, FloatProd>>;
  table.at(Operator::min, type) = kernel<OnFloat<T, FloatMin>>;
  table.at(Operator::max, type) = kernel<OnFloat<T, FloatMax>>;
}

template <class T>
void add_complex(KernelTable& table, Type type) {
  table.at(Operator::sum, type) = complex_sum<T>;
  table.at(Operator::prod, type) = kernel<ComplexProd<T>>;
}

}  // namespace

void add_float_kernels(KernelTable& table) {
  table.target = hwy::TargetName(HWY_TARGET);
  add_real<float>(table, Type::float32);
  add_real<double>(table, Type::float64);
  add_complex<float>(table, Type::complex64);
  add_complex<double>(table, Type::complex128);
}

#else

void add_float_kernels(KernelTable&) {}  // the reference stays

#endif
}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::arith {

void add_float_kernels(KernelTable& table) { UNISONO_BEST_VERSION(add_float_kernels)(table); }

}  // namespace unisono::arith
#endif
