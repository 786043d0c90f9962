// SPDX-License-Identifier: BSD-3-Clause
// Exact sums in two stages (Collange, Defour, Graillat and Iakymchuk 2015; Neal 2015). An expansion
// of two numbers collects the sum without error as long as the second number takes all errors. If
// it cannot, or if the sum is not finite, a superaccumulator adds the terms as integers: digits of
// 32 bits in words of 64, so that no carry is lost. The expansion of 16-bit terms is of float32.
// Vectors are summed block by block, so that the expansions of a block stay in the first cache.
// Any thread.
#include "arith/sums/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "arith/sums/expansion.hpp"
#include "arith/sums/half_expansion.hpp"

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

// Elements of a block.
constexpr std::int64_t kSumBlock = 256;

template <class Element>
const std::byte* element_place(const void* vector, std::int64_t at) {
  return static_cast<const std::byte*>(vector) + at * static_cast<std::int64_t>(sizeof(Element));
}

template <class F>
typename F::Raw sum_as_integers(const Operands& operands, std::int64_t at) {
  Superaccumulator<F> sum;
  for (std::int32_t i = 0; i < operands.count; ++i) {
    typename F::Raw raw;
    std::memcpy(&raw, element_place<typename F::Raw>(operands[i], at), sizeof raw);
    sum.add(raw);
  }
  return sum.rounded();
}

// How each type is summed: in expansions of Real, from Elements, or from terms that widen_terms()
// loads. narrow_sums() rounds sum + rest once, and returns false if `lost` tells it or it finds
// that this is not the sum.
template <class ExactFormat, class RealType>
struct SummedReal {
  using Format = ExactFormat;
  using Real = RealType;
  using Element = RealType;
  static void widen_terms(Real* terms, const std::byte* from, std::size_t count) {
    std::memcpy(terms, from, count * sizeof(Real));
  }
  static bool narrow_sums(typename Format::Raw* sums, const Real* sum, const Real* rest, Real* lost,
                          std::size_t count) {
    bool all_known = true;
    for (std::size_t i = 0; i < count; ++i) {
      const Real rounded = rest[i] == 0 ? sum[i] : sum[i] + rest[i];
      sums[i] = std::bit_cast<typename Format::Raw>(rounded);
      if (lost[i] == 0 && std::isfinite(rounded)) continue;
      lost[i] = 1;
      all_known = false;
    }
    return all_known;
  }
};

template <class ExactFormat, class Half>
struct SummedHalf {
  using Format = ExactFormat;
  using Real = float;
  using Element = Half;
  static void widen_terms(float* terms, const std::byte* from, std::size_t count) {
    widen(terms, reinterpret_cast<const Half*>(from), count);
  }
  static bool narrow_sums(std::uint16_t* sums, const float* sum, const float* rest, float* lost,
                          std::size_t count) {
    static_assert(sizeof(Half) == sizeof *sums);
    return narrow_expansions(reinterpret_cast<Half*>(sums), sum, rest, lost, count);
  }
};

// Elements [from, from + count) of a sum. The target is written last: it may be an operand.
template <class Summed>
void sum_block(void* target, const Operands& operands, std::int64_t from, std::size_t count) {
  using Real = typename Summed::Real;
  using Raw = typename Summed::Format::Raw;
  ExpansionBlock<Real, kSumBlock> all;
  Summed::widen_terms(all.sum, element_place<Raw>(operands[0], from), count);
  std::fill_n(all.rest, count, Real{0});
  std::fill_n(all.lost, count, Real{0});
  alignas(64) Real terms[kSumBlock];
  for (std::int32_t i = 1; i < operands.count; ++i) {
    Summed::widen_terms(terms, element_place<Raw>(operands[i], from), count);
    add_to_expansions(all.sum, all.rest, all.lost, terms, count);
  }
  Raw sums[kSumBlock];
  const bool all_known = Summed::narrow_sums(sums, all.sum, all.rest, all.lost, count);
  for (std::size_t i = 0; !all_known && i < count; ++i) {
    if (all.lost[i] == 0) continue;
    const std::int64_t element = from + static_cast<std::int64_t>(i);
    sums[i] = sum_as_integers<typename Summed::Format>(operands, element);
  }
  std::memcpy(static_cast<std::byte*>(target) + from * static_cast<std::int64_t>(sizeof(Raw)), sums,
              count * sizeof(Raw));
}

// So many operands are summed in registers, element by element; more of them block by block.
constexpr std::int32_t kMostRows = 64;

template <class Format>
void mend_element(const void* operands, std::size_t at, void* result) {
  const typename Format::Raw sum = sum_as_integers<Format>(*static_cast<const Operands*>(operands),
                                                           static_cast<std::int64_t>(at));
  std::memcpy(result, &sum, sizeof sum);
}

template <class Summed>
bool sum_in_registers(void* target, const Operands& operands, std::int64_t count) {
  using Element = typename Summed::Element;
  const Element* rows[kMostRows];
  if (operands.count > kMostRows) return false;
  auto misaligned = reinterpret_cast<std::uintptr_t>(target);
  for (std::int32_t i = 0; i < operands.count; ++i) {
    rows[i] = static_cast<const Element*>(operands[i]);
    misaligned |= reinterpret_cast<std::uintptr_t>(rows[i]);
  }
  if (misaligned % alignof(Element) != 0) return false;
  sum_rows(static_cast<Element*>(target), rows, operands.count, static_cast<std::size_t>(count),
           {mend_element<typename Summed::Format>, &operands});
  return true;
}

template <class Summed>
void sum_exactly(void* target, const Operands& operands, std::int64_t count) {
  if (sum_in_registers<Summed>(target, operands, count)) return;
  for (std::int64_t from = 0; from < count; from += kSumBlock) {
    sum_block<Summed>(target, operands, from,
                      static_cast<std::size_t>(std::min(kSumBlock, count - from)));
  }
}

// A complex number is two real ones.
template <class Summed>
void sum_complex_exactly(void* target, const Operands& operands, std::int64_t count) {
  sum_exactly<Summed>(target, operands, 2 * count);
}

using SummedFloat32 = SummedReal<ExactBinary32, float>;
using SummedFloat64 = SummedReal<ExactBinary64, double>;

}  // namespace

SumKernel find_exact_sum(Type type) {
  switch (type) {
    case Type::float16:
      return sum_exactly<SummedHalf<ExactBinary16, Float16>>;
    case Type::bfloat16:
      return sum_exactly<SummedHalf<ExactBfloat16, BFloat16>>;
    case Type::float32:
      return sum_exactly<SummedFloat32>;
    case Type::float64:
      return sum_exactly<SummedFloat64>;
    case Type::complex64:
      return sum_complex_exactly<SummedFloat32>;
    case Type::complex128:
      return sum_complex_exactly<SummedFloat64>;
    case Type::byte:
    case Type::int8:
    case Type::int16:
    case Type::int32:
    case Type::int64:
    case Type::uint8:
    case Type::uint16:
    case Type::uint32:
    case Type::uint64:
    case Type::int16_int32:
    case Type::int32_int32:
    case Type::int64_int32:
    case Type::float32_int32:
    case Type::float64_int32:
      break;
  }
  return nullptr;
}

}  // namespace unisono::arith
