/* SPDX-License-Identifier: BSD-3-Clause
 * IEEE-754 binary64 and binary32 in integer instructions: sum, min and max on bit patterns, for
 * where there is no floating-point unit (eBPF). Plain C11, which is C++ too: no loops, no 128-bit
 * integers, no library, no tables. The results are those of the kernels, bit for bit: rounded to
 * nearest even, subnormals, infinities, -0 below +0 (docs/reference/arithmetic.md). A NaN among the
 * operands gives a quiet NaN, the left one's payload before the right one's; inf - inf gives
 * UNISONO_FLOAT64_NAN. Pure functions; any thread.
 */
#pragma once

#include <stdint.h>

#define UNISONO_FLOAT64_NAN 0x7FF8000000000000ULL
#define UNISONO_FLOAT32_NAN 0x7FC00000U

/* Both formats are one calculation in 64-bit registers; the widths are constants that fold away. */
#define UNISONO_SOFT_FLOAT static inline __attribute__((always_inline))

/* How far the highest set bit of `bits`, which is not 0, lies below bit 63. */
UNISONO_SOFT_FLOAT uint32_t unisono_leading_zeros(uint64_t bits) {
  uint32_t zeros = 0;
  if (bits >> 32 == 0) {
    zeros += 32;
    bits <<= 32;
  }
  if (bits >> 48 == 0) {
    zeros += 16;
    bits <<= 16;
  }
  if (bits >> 56 == 0) {
    zeros += 8;
    bits <<= 8;
  }
  if (bits >> 60 == 0) {
    zeros += 4;
    bits <<= 4;
  }
  if (bits >> 62 == 0) {
    zeros += 2;
    bits <<= 2;
  }
  return bits >> 63 == 0 ? zeros + 1 : zeros;
}

/* A sum of which one operand is infinite or a NaN. */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_add_special(uint64_t a, uint64_t b, uint64_t infinity,
                                                     uint64_t sign, uint64_t quiet) {
  const uint64_t a_size = a & ~sign;
  const uint64_t b_size = b & ~sign;
  if (a_size > infinity) return a | quiet;
  if (b_size > infinity) return b | quiet;
  if (a_size == b_size && a != b) return infinity | quiet;
  return a_size == infinity ? a : b;
}

/* The sum of two patterns with `width` bits of fraction and the given sign bit. Three bits below
 * the fraction (guard, round, sticky) are all that rounding needs to know of what is shifted out.
 */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_add(uint64_t a, uint64_t b, uint32_t width,
                                             uint64_t sign) {
  const uint64_t one = 1ULL << width; /* the implicit bit of a normal number's significand */
  const uint64_t infinity = sign - one;
  if ((a & ~sign) >= infinity || (b & ~sign) >= infinity) {
    return unisono_soft_add_special(a, b, infinity, sign, one >> 1);
  }
  if ((a & ~sign) < (b & ~sign)) { /* from here on, a is the larger one: its sign is the sum's */
    const uint64_t larger = b;
    b = a;
    a = larger;
  }
  uint64_t exponent = (a & ~sign) >> width;
  uint64_t b_exponent = (b & ~sign) >> width;
  uint64_t sum = a & (one - 1);
  uint64_t smaller = b & (one - 1);
  if (exponent != 0)
    sum |= one;
  else
    exponent = 1; /* subnormal: the scale of the smallest normal number, without implicit bit */
  if (b_exponent != 0)
    smaller |= one;
  else
    b_exponent = 1;
  sum <<= 3;
  smaller <<= 3;

  const uint64_t distance = exponent - b_exponent;
  if (distance > width + 3) {
    smaller = smaller != 0;
  } else if (distance != 0) {
    const uint64_t lost = smaller & ((1ULL << distance) - 1);
    smaller = (smaller >> distance) | (lost != 0);
  }
  if (((a ^ b) & sign) == 0) {
    sum += smaller;
    if (sum >> (width + 4) != 0) {
      sum = (sum >> 1) | (sum & 1);
      ++exponent;
    }
  } else {
    sum -= smaller;
    if (sum == 0) return 0; /* x - x is +0 */
    uint64_t up = unisono_leading_zeros(sum) - (60 - width);
    if (up > exponent - 1) up = exponent - 1; /* the result is subnormal */
    sum <<= up;
    exponent -= up;
  }
  /* The implicit bit adds the last 1 to the exponent; a subnormal has neither. Rounding up may
   * carry into the exponent, which is then right too, up to infinity. */
  uint64_t bits = ((exponent - 1) << width) + (sum >> 3);
  const uint64_t rest = sum & 7;
  if (rest > 4 || (rest == 4 && (bits & 1) != 0)) ++bits;
  if (bits > infinity) bits = infinity;
  return bits | (a & sign);
}

/* The lesser or, if `greatest`, the greater of two patterns; -0 is less than +0. */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_extreme(uint64_t a, uint64_t b, uint32_t width,
                                                 uint64_t sign, int greatest) {
  const uint64_t one = 1ULL << width;
  const uint64_t infinity = sign - one;
  if ((a & ~sign) > infinity) return a | (one >> 1);
  if ((b & ~sign) > infinity) return b | (one >> 1);
  /* Patterns in the order of their values: negative ones reversed, below the others. */
  const uint64_t a_place = (a & sign) != 0 ? ~a & (2 * sign - 1) : a | sign;
  const uint64_t b_place = (b & sign) != 0 ? ~b & (2 * sign - 1) : b | sign;
  return (a_place < b_place) == (greatest == 0) ? a : b;
}

UNISONO_SOFT_FLOAT uint64_t unisono_float64_add(uint64_t a, uint64_t b) {
  return unisono_soft_add(a, b, 52, 1ULL << 63);
}

UNISONO_SOFT_FLOAT uint64_t unisono_float64_min(uint64_t a, uint64_t b) {
  return unisono_soft_extreme(a, b, 52, 1ULL << 63, 0);
}

UNISONO_SOFT_FLOAT uint64_t unisono_float64_max(uint64_t a, uint64_t b) {
  return unisono_soft_extreme(a, b, 52, 1ULL << 63, 1);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_add(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_add(a, b, 23, 1ULL << 31);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_min(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_extreme(a, b, 23, 1ULL << 31, 0);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_max(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_extreme(a, b, 23, 1ULL << 31, 1);
}
