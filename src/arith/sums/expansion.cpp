// SPDX-License-Identifier: BSD-3-Clause
// The additions to expansions, compiled once per instruction set. Nothing here is multiplied, so a
// compiler has nothing to contract.
#include "arith/sums/expansion.hpp"

#include <cmath>

#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arith/sums/expansion.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {
namespace {

template <class Real>
struct SummedRows {
  Real* target;
  const Real* const* rows;
  std::int32_t count;
};

template <class Real>
struct ExpansionSpans {
  Real* sum;
  Real* rest;
  Real* lost;
  const Real* terms;
};

#if UNISONO_HAVE_SIMD
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

// Sums of two: one addition is one rounding. Stops at four registers with a sum that is infinite or
// NaN, or that are not full.
template <class Real>
HWY_INLINE std::size_t add_two_rows(const SummedRows<Real>& all, std::size_t elements) {
  const hn::ScalableTag<Real> tag;
  using V = hn::VFromD<decltype(tag)>;
  const std::size_t lanes = hn::Lanes(tag);
  const auto sum_at = [&](std::size_t at) {
    return hn::Add(hn::LoadU(tag, all.rows[0] + at), hn::LoadU(tag, all.rows[1] + at));
  };
  std::size_t i = 0;
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    const V a = sum_at(i), b = sum_at(i + lanes);
    const V c = sum_at(i + 2 * lanes), d = sum_at(i + 3 * lanes);
    // A number minus itself is 0 if it is finite, and else NaN.
    const V left = hn::Or(hn::Sub(a, a), hn::Sub(b, b));
    const V right = hn::Or(hn::Sub(c, c), hn::Sub(d, d));
    if (!hn::AllTrue(tag, hn::Eq(hn::Or(left, right), hn::Zero(tag)))) break;
    hn::StoreU(a, tag, all.target + i);
    hn::StoreU(b, tag, all.target + i + lanes);
    hn::StoreU(c, tag, all.target + i + 2 * lanes);
    hn::StoreU(d, tag, all.target + i + 3 * lanes);
  }
  return i;
}

// The exact sum of a register of elements, and in which of them it is not known.
template <class D, class V>
HWY_INLINE V sum_register(D tag, const SummedRows<hn::TFromD<D>>& all, std::size_t at,
                          hn::Mask<D>& is_bad) {
  V sum = hn::LoadU(tag, all.rows[0] + at);
  if (all.count == 2) {  // one addition is one rounding
    sum = hn::Add(sum, hn::LoadU(tag, all.rows[1] + at));
    is_bad = hn::Not(hn::IsFinite(sum));
    return sum;
  }
  V rest = hn::Zero(tag);
  V all_lost = rest;
  for (std::int32_t i = 1; i < all.count; ++i) {
    V error = hn::Zero(tag);
    V lost = error;
    sum = vector_with_error(sum, hn::LoadU(tag, all.rows[i] + at), error);
    rest = vector_with_error(rest, error, lost);
    all_lost = hn::Or(all_lost, lost);
  }
  // Without a rest the sum stays, as -0 + 0 would be 0.
  const V zero = hn::Zero(tag);
  sum = hn::IfThenElse(hn::Eq(rest, zero), sum, hn::Add(sum, rest));
  is_bad = hn::Not(hn::And(hn::Eq(all_lost, zero), hn::IsFinite(sum)));
  return sum;
}

template <class Real>
HWY_INLINE std::size_t sum_registers(const SummedRows<Real>& all, std::size_t elements,
                                     const Mend& mend) {
  const hn::ScalableTag<Real> tag;
  using D = decltype(tag);
  using V = hn::VFromD<D>;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = all.count == 2 ? add_two_rows(all, elements) : 0;
  for (; i + lanes <= elements; i += lanes) {
    hn::Mask<D> is_bad;
    V sum = sum_register<D, V>(tag, all, i, is_bad);
    if (!hn::AllFalse(tag, is_bad)) [[unlikely]] {
      HWY_ALIGN Real sums[hn::MaxLanes(D())];
      HWY_ALIGN Real bad[hn::MaxLanes(D())];
      hn::Store(sum, tag, sums);
      hn::Store(hn::IfThenElseZero(is_bad, hn::Set(tag, Real{1})), tag, bad);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        if (bad[lane] != 0) mend.element(mend.context, i + lane, sums + lane);
      }
      sum = hn::Load(tag, sums);
    }
    hn::StoreU(sum, tag, all.target + i);
  }
  return i;
}
#else
template <class Real>
std::size_t sum_registers(const SummedRows<Real>&, std::size_t, const Mend&) {
  return 0;
}

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

template <class Real>
HWY_INLINE void sum_all_rows(const SummedRows<Real>& all, std::size_t elements, const Mend& mend) {
  for (std::size_t i = sum_registers(all, elements, mend); i < elements; ++i) {
    Real sum = all.rows[0][i];
    Real rest = 0;
    bool is_exact = true;
    for (std::int32_t row = 1; row < all.count; ++row) {
      Real error = 0;
      Real lost = 0;
      sum = add_with_error(sum, all.rows[row][i], error);
      rest = add_with_error(rest, error, lost);
      is_exact = is_exact && lost == 0;
    }
    if (rest != 0) sum += rest;
    if (!is_exact || !std::isfinite(sum)) mend.element(mend.context, i, &sum);
    all.target[i] = sum;
  }
}

}  // namespace

void sum_rows32(float* target, const float* const* rows, std::int32_t count, std::size_t elements,
                const Mend& mend) {
  sum_all_rows<float>({target, rows, count}, elements, mend);
}

void sum_rows64(double* target, const double* const* rows, std::int32_t count, std::size_t elements,
                const Mend& mend) {
  sum_all_rows<double>({target, rows, count}, elements, mend);
}

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

void sum_rows(float* target, const float* const* rows, std::int32_t count, std::size_t elements,
              const Mend& mend) {
  UNISONO_BEST_VERSION(sum_rows32)(target, rows, count, elements, mend);
}

void sum_rows(double* target, const double* const* rows, std::int32_t count, std::size_t elements,
              const Mend& mend) {
  UNISONO_BEST_VERSION(sum_rows64)(target, rows, count, elements, mend);
}

void add_to_expansions(float* sum, float* rest, float* lost, const float* terms,
                       std::size_t count) {
  UNISONO_BEST_VERSION(add_terms32)(sum, rest, lost, terms, count);
}

void add_to_expansions(double* sum, double* rest, double* lost, const double* terms,
                       std::size_t count) {
  UNISONO_BEST_VERSION(add_terms64)(sum, rest, lost, terms, count);
}

}  // namespace unisono::arith
#endif
