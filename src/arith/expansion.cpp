// SPDX-License-Identifier: BSD-3-Clause
// The additions to a block of expansions, compiled once per instruction set. Nothing here is
// multiplied, so a compiler has nothing to contract.
#include "arith/expansion.hpp"

#include "arith/simd_target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/expansion.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
namespace {

template <class Real>
struct ExpansionSpans {
  Real* sum;
  Real* rest;
  Real* lost;
  const Real* terms;
};

#if UNISONO_ARITH_HAVE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
HWY_INLINE V vector_with_error(V left, V right, V& error) {
  const V sum = hn::Add(left, right);
  const V part = hn::Sub(sum, left);
  error = hn::Add(hn::Sub(left, hn::Sub(sum, part)), hn::Sub(right, part));
  return sum;
}

// The number of elements done: all but those that fill no register.
template <class Real>
HWY_INLINE std::size_t add_registers(const ExpansionSpans<Real>& all, std::size_t count) {
  const hn::ScalableTag<Real> tag;
  using V = hn::VFromD<decltype(tag)>;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    V error = hn::Zero(tag);
    V lost = error;
    const V sum =
        vector_with_error(hn::LoadU(tag, all.sum + i), hn::LoadU(tag, all.terms + i), error);
    const V rest = vector_with_error(hn::LoadU(tag, all.rest + i), error, lost);
    hn::StoreU(sum, tag, all.sum + i);
    hn::StoreU(rest, tag, all.rest + i);
    hn::StoreU(hn::Or(hn::LoadU(tag, all.lost + i), hn::Abs(lost)), tag, all.lost + i);
  }
  return i;
}
#else
template <class Real>
std::size_t add_registers(const ExpansionSpans<Real>&, std::size_t) {
  return 0;
}
#endif

template <class Real>
HWY_INLINE void add_terms(const ExpansionSpans<Real>& all, std::size_t count) {
  for (std::size_t i = add_registers(all, count); i < count; ++i) {
    Real error = 0;
    Real lost = 0;
    all.sum[i] = add_with_error(all.sum[i], all.terms[i], error);
    all.rest[i] = add_with_error(all.rest[i], error, lost);
    if (lost != 0) all.lost[i] = lost;
  }
}

}  // namespace

void add_terms32(float* sum, float* rest, float* lost, const float* terms, std::size_t count) {
  add_terms<float>({sum, rest, lost, terms}, count);
}

void add_terms64(double* sum, double* rest, double* lost, const double* terms, std::size_t count) {
  add_terms<double>({sum, rest, lost, terms}, count);
}

}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::arith {

HWY_EXPORT(add_terms32);
HWY_EXPORT(add_terms64);

void add_to_expansions(float* sum, float* rest, float* lost, const float* terms,
                       std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_terms32)(sum, rest, lost, terms, count);
}

void add_to_expansions(double* sum, double* rest, double* lost, const double* terms,
                       std::size_t count) {
  HWY_DYNAMIC_DISPATCH(add_terms64)(sum, rest, lost, terms, count);
}

}  // namespace unisono::arith
#endif
