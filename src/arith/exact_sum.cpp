// SPDX-License-Identifier: BSD-3-Clause
// Exact sums in two stages (Collange, Defour, Graillat and Iakymchuk 2015; Neal 2015). An expansion
// of two numbers collects the sum without error as long as the second number takes all errors. If
// it cannot, or if the sum is not finite, a superaccumulator adds the terms as integers: digits of
// 32 bits in words of 64, so that no carry is lost. The expansion of 16-bit terms is of float64.
// Any thread.
#include "arith/exact_sum.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "arith/half.hpp"

namespace unisono::arith {
namespace {

template <class RawBits, int kFractionBits, int kExponentBits>
struct ExactFormat {
  using Raw = RawBits;
  static constexpr int kFraction = kFractionBits;
  static constexpr unsigned kTopExponent = (1u << kExponentBits) - 1;
  static constexpr Raw kHidden = static_cast<Raw>(Raw{1} << kFractionBits);
  static constexpr Raw kInfinity = static_cast<Raw>(Raw{kTopExponent} << kFractionBits);
  static constexpr Raw kQuietNan = static_cast<Raw>(kInfinity | (kHidden >> 1));
  static constexpr Raw kSign = static_cast<Raw>(Raw{1} << (kFractionBits + kExponentBits));
  // All shifts of a significand, its bits, and 32 bits for the number of terms.
  static constexpr int kDigits = (static_cast<int>(kTopExponent) + kFractionBits + 33) / 32 + 2;
};
using ExactBinary16 = ExactFormat<std::uint16_t, 10, 5>;
using ExactBfloat16 = ExactFormat<std::uint16_t, 7, 8>;
using ExactBinary32 = ExactFormat<std::uint32_t, 23, 8>;
using ExactBinary64 = ExactFormat<std::uint64_t, 52, 11>;

// The sum in units of the smallest subnormal number.
template <class F>
class Superaccumulator {
 public:
  using Raw = typename F::Raw;

  void add(Raw bits) {
    const bool negative = (bits & F::kSign) != 0;
    all_negative_zero_ = all_negative_zero_ && bits == F::kSign;
    const auto exponent = static_cast<unsigned>((bits >> F::kFraction) & F::kTopExponent);
    const auto fraction = static_cast<std::uint64_t>(bits & static_cast<Raw>(F::kHidden - 1));
    if (exponent == F::kTopExponent) {
      (fraction != 0 ? nan_ : negative ? minus_infinity_ : plus_infinity_) = true;
      return;
    }
    const std::uint64_t significand = exponent == 0 ? fraction : fraction | F::kHidden;
    const unsigned shift = exponent == 0 ? 0 : exponent - 1;
    const std::uint64_t low = (significand & 0xffffffffu) << (shift % 32);
    const std::uint64_t high = (significand >> 32) << (shift % 32);
    put(shift / 32, low & 0xffffffffu, negative);
    put(shift / 32 + 1, (low >> 32) + (high & 0xffffffffu), negative);
    put(shift / 32 + 2, high >> 32, negative);
  }

  Raw rounded() {
    if (nan_ || (plus_infinity_ && minus_infinity_)) return F::kQuietNan;
    if (plus_infinity_) return F::kInfinity;
    if (minus_infinity_) return static_cast<Raw>(F::kInfinity | F::kSign);
    if (all_negative_zero_) return F::kSign;
    const bool negative = carry() < 0;
    if (negative) {
      for (auto& digit : digits_) digit = -digit;
      carry();
    }
    const Raw magnitude = round_magnitude();
    return negative ? static_cast<Raw>(magnitude | F::kSign) : magnitude;
  }

 private:
  void put(unsigned place, std::uint64_t value, bool negative) {
    const auto term = static_cast<std::int64_t>(value);
    digits_[place] += negative ? -term : term;
  }

  // All digits to 0 ... 2^32 - 1 except for the last; returns a number of the sum's sign.
  std::int64_t carry() {
    for (std::size_t i = 0; i + 1 < digits_.size(); ++i) {
      digits_[i + 1] += digits_[i] >> 32;
      digits_[i] &= 0xffffffff;
    }
    return digits_.back();
  }

  bool bit(int place) const {
    return ((digits_[static_cast<std::size_t>(place / 32)] >> (place % 32)) & 1) != 0;
  }

  Raw round_magnitude() const {
    int top = static_cast<int>(digits_.size()) * 32 - 1;
    while (top >= 0 && !bit(top)) --top;
    const int lowest = top > F::kFraction ? top - F::kFraction : 0;
    std::uint64_t significand = 0;
    for (int place = top; place >= lowest; --place) {
      significand = significand << 1 | static_cast<std::uint64_t>(bit(place));
    }
    if (lowest > 0 && bit(lowest - 1)) {
      bool sticky = (significand & 1) != 0;
      for (int place = lowest - 2; !sticky && place >= 0; --place) sticky = bit(place);
      if (sticky) ++significand;
    }
    // The hidden bit of a normal number, and a carry of the rounding, add to the exponent.
    const std::uint64_t result = (static_cast<std::uint64_t>(lowest) << F::kFraction) + significand;
    return result >= F::kInfinity ? F::kInfinity : static_cast<Raw>(result);
  }

  std::array<std::int64_t, F::kDigits> digits_{};
  bool nan_ = false, plus_infinity_ = false, minus_infinity_ = false, all_negative_zero_ = true;
};

template <class F, class Element>
Element sum_as_integers(std::span<const Element* const> sources, std::int64_t at) {
  Superaccumulator<F> sum;
  for (const Element* source : sources) sum.add(std::bit_cast<typename F::Raw>(source[at]));
  return std::bit_cast<Element>(sum.rounded());
}

template <class Real>
Real add_with_error(Real left, Real right, Real& error) {
  const Real sum = left + right;
  const Real part = sum - left;
  error = (left - (sum - part)) + (right - part);
  return sum;
}

// The sum is `sum` + `rest` if it is `exact`.
template <class Real>
struct SumExpansion {
  Real sum, rest = 0;
  bool exact = true;

  void add(Real term) {
    Real error = 0, lost = 0;
    sum = add_with_error(sum, term, error);
    rest = add_with_error(rest, error, lost);
    exact = exact && lost == 0;
  }
};

template <class F, class Real>
void sum_reals(Real* target, std::span<const Real* const> sources, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    SumExpansion<Real> all{sources.front()[i]};
    for (const Real* source : sources.subspan(1)) all.add(source[i]);
    const Real rounded = all.rest == 0 ? all.sum : all.sum + all.rest;
    target[i] = all.exact && std::isfinite(rounded) ? rounded : sum_as_integers<F>(sources, i);
  }
}

// Rounds to odd what was rounded to nearest with this error (Boldo and Melquiond 2008). A result
// that is not exact has an odd last bit, so a shorter format never takes it for a tie.
template <class Raw, class Real>
Real round_to_odd(Real nearest, double error) {
  const auto bits = std::bit_cast<Raw>(nearest);
  if (error == 0 || (bits & 1) != 0) return nearest;
  return std::bit_cast<Real>((error > 0) == (nearest > 0) ? bits + 1 : bits - 1);
}

template <class F, class Half>
void sum_halves(std::uint16_t* target, std::span<const std::uint16_t* const> sources,
                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    SumExpansion<double> all{to_float32(Half{sources.front()[i]})};
    for (const auto* source : sources.subspan(1)) all.add(to_float32(Half{source[i]}));
    if (!all.exact || !std::isfinite(all.sum)) {
      target[i] = sum_as_integers<F>(sources, i);
      continue;
    }
    double error = 0;
    double rounded = all.sum;
    if (all.rest != 0) {
      rounded = add_with_error(all.sum, all.rest, error);
      rounded = round_to_odd<std::uint64_t>(rounded, error);
    }
    const auto single = static_cast<float>(rounded);
    error = rounded - static_cast<double>(single);
    target[i] = narrow<Half>(round_to_odd<std::uint32_t>(single, error)).bits;
  }
}

}  // namespace

void sum_exactly_float16(std::uint16_t* target, std::span<const std::uint16_t* const> sources,
                         std::int64_t count) {
  sum_halves<ExactBinary16, Float16>(target, sources, count);
}

void sum_exactly_bfloat16(std::uint16_t* target, std::span<const std::uint16_t* const> sources,
                          std::int64_t count) {
  sum_halves<ExactBfloat16, BFloat16>(target, sources, count);
}

void sum_exactly_float32(float* target, std::span<const float* const> sources, std::int64_t count) {
  sum_reals<ExactBinary32>(target, sources, count);
}

void sum_exactly_float64(double* target, std::span<const double* const> sources,
                         std::int64_t count) {
  sum_reals<ExactBinary64>(target, sources, count);
}

}  // namespace unisono::arith
