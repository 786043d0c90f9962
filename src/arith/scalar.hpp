// SPDX-License-Identifier: BSD-3-Clause
// Every operator on one element in plain C++: this defines what the kernels compute. The rules are
// written out in docs/reference/arithmetic.md. For arith/'s own files only: the reference kernels
// loop over these functions, the SIMD kernels use them for vectors too short for a register.
// Has to be compiled without contraction of a*b+c (-ffp-contract=off). Pure functions; any thread.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>

#include "arith/half.hpp"

namespace unisono::arith {

template <std::floating_point T>
struct Complex {
  T re;
  T im;
};

template <class T>
struct Pair {
  T value;
  std::int32_t index;
};

template <class T>
concept HalfFloat = std::same_as<T, Float16> || std::same_as<T, BFloat16>;

// A rounded product. GCC 12's SLP vectorizer contracts complex products into fused multiply-adds,
// despite -ffp-contract=off. It cannot look through this function.
template <std::floating_point T>
inline T rounded(T product) {
  __asm__("" : "+m"(product));
  return product;
}

// Integers are calculated modulo 2^64 and cut to their width, so that overflow wraps and
// small types are not promoted to int.
struct Sum {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
  template <std::floating_point T>
  static T apply(T a, T b) {
    return a + b;
  }
  template <HalfFloat T>
  static T apply(T a, T b) {
    return narrow<T>(to_float32(a) + to_float32(b));
  }
  template <class T>
  static Complex<T> apply(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
  }
};

struct Prod {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
  template <std::floating_point T>
  static T apply(T a, T b) {
    return a * b;
  }
  template <HalfFloat T>
  static T apply(T a, T b) {
    return narrow<T>(to_float32(a) * to_float32(b));
  }
  template <class T>
  static Complex<T> apply(Complex<T> a, Complex<T> b) {
    return {rounded(a.re * b.re) - rounded(a.im * b.im),
            rounded(a.re * b.im) + rounded(a.im * b.re)};
  }
};

struct Min {
  template <std::integral T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
  template <std::floating_point T>
  static T apply(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
  template <HalfFloat T>
  static T apply(T a, T b) {
    return narrow<T>(apply(to_float32(a), to_float32(b)));
  }
};

struct Max {
  template <std::integral T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
  template <std::floating_point T>
  static T apply(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
  template <HalfFloat T>
  static T apply(T a, T b) {
    return narrow<T>(apply(to_float32(a), to_float32(b)));
  }
};

struct LogicalAnd {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(a != 0 && b != 0);
  }
};

struct LogicalOr {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(a != 0 || b != 0);
  }
};

struct LogicalXor {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

struct BitwiseAnd {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOr {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXor {
  template <std::integral T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// The located operators choose one of the operands, which is then copied with its padding.
template <class Before>
struct Located {
  template <class T>
  static bool takes_right(Pair<T> left, Pair<T> right) {
    if (wins(right.value, left.value)) return true;
    return !wins(left.value, right.value) && right.index < left.index;
  }
  // A NaN wins against every number.
  template <class T>
  static bool wins(T a, T b) {
    if constexpr (std::floating_point<T>) {
      if (std::isnan(a)) return !std::isnan(b);
    }
    return Before{}(a, b);
  }
};
using MinLoc = Located<std::less<>>;
using MaxLoc = Located<std::greater<>>;

}  // namespace unisono::arith
