/* SPDX-License-Identifier: BSD-3-Clause
 * IEEE-754 binary64, binary32, binary16 and bfloat16 in integer instructions: sum, product, min and
 * max on bit patterns, for where there is no floating-point unit (eBPF). Plain C11, which is C++
 * too: no loops, no 128-bit integers, no library, no tables. The results are those of the kernels,
 * bit for bit: rounded to nearest even, subnormals, infinities, -0 below +0
 * (docs/reference/arithmetic.md). A NaN among the operands gives a quiet NaN, the left one's
 * payload before the right one's; inf - inf gives UNISONO_FLOAT64_NAN. Pure functions; any thread.
 */
#pragma once

#include <stdint.h>

#define UNISONO_FLOAT64_NAN 0x7FF8000000000000ULL
#define UNISONO_FLOAT32_NAN 0x7FC00000U

/* Both formats are one calculation in 64-bit registers; the widths are constants that fold away. */
#define UNISONO_SOFT_FLOAT static inline __attribute__((always_inline))

/* Hides the value from the compiler, which would otherwise turn the calculation into a comparison
 * and a jump. Operands' signs and sizes follow no pattern that a processor could predict. */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_opaque(uint64_t bits) {
  __asm__("" : "+r"(bits));
  return bits;
}

/* 1 if a < b, otherwise 0, for numbers below 2^63. */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_less(uint64_t a, uint64_t b) {
  return unisono_soft_opaque(a - b) >> 63;
}

/* How far the highest set bit of `bits`, which is not 0, lies below bit 63. */
UNISONO_SOFT_FLOAT uint32_t unisono_leading_zeros(uint64_t bits) {
  const uint64_t by_32 = unisono_soft_less(bits >> 32, 1) << 5;
  bits <<= by_32;
  const uint64_t by_16 = unisono_soft_less(bits >> 48, 1) << 4;
  bits <<= by_16;
  const uint64_t by_8 = unisono_soft_less(bits >> 56, 1) << 3;
  bits <<= by_8;
  const uint64_t by_4 = unisono_soft_less(bits >> 60, 1) << 2;
  bits <<= by_4;
  const uint64_t by_2 = unisono_soft_less(bits >> 62, 1) << 1;
  bits <<= by_2;
  return (uint32_t)(by_32 + by_16 + by_8 + by_4 + by_2 + unisono_soft_less(bits >> 63, 1));
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

/* The sum of two patterns with `width` bits of fraction and the sign at bit `top`. Three bits below
 * the fraction (guard, round, sticky) are all that rounding needs to know of what is shifted out.
 * The only jumps are for what is rare: infinities, nearly equal operands, subnormal results. */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_add(uint64_t a, uint64_t b, uint32_t width, uint32_t top) {
  const uint64_t one = 1ULL << width; /* the implicit bit of a normal number's significand */
  const uint64_t sign = 1ULL << top;
  const uint64_t infinity = sign - one;
  if ((a & ~sign) >= infinity || (b & ~sign) >= infinity) {
    return unisono_soft_add_special(a, b, infinity, sign, one >> 1);
  }
  /* From here on, a is the larger one: its sign is the sum's. */
  const uint64_t swapped = (a ^ b) & -unisono_soft_less(a & ~sign, b & ~sign);
  a ^= swapped;
  b ^= swapped;
  /* Subnormal numbers have the scale of the smallest normal one, and no implicit bit. */
  uint64_t exponent = (a & ~sign) >> width;
  uint64_t b_exponent = (b & ~sign) >> width;
  const uint64_t is_small = unisono_soft_less(exponent, 1);
  const uint64_t b_is_small = unisono_soft_less(b_exponent, 1);
  exponent += is_small;
  b_exponent += b_is_small;
  uint64_t sum = ((a & (one - 1)) | (1 - is_small) << width) << 3;
  uint64_t smaller = ((b & (one - 1)) | (1 - b_is_small) << width) << 3;

  uint64_t distance = exponent - b_exponent;
  if (distance > 63) distance = 63; /* all of it is lost */
  const uint64_t below = (1ULL << distance) - 1;
  smaller = (smaller >> distance) | (((smaller & below) + below) >> distance);

  const uint64_t differ = (a ^ b) >> top & 1; /* the signs: the smaller one is taken away */
  sum += (smaller ^ -differ) + differ;
  const uint64_t carry = sum >> (width + 4);
  sum = (sum >> carry) | (sum & carry);
  exponent += carry;
  if (sum >> width == 0 || exponent <= 3) {
    if (sum == 0) return a & sign & (differ - 1); /* x - x is +0 */
    uint64_t up = unisono_leading_zeros(sum) - (60 - width);
    if (up > exponent - 1) up = exponent - 1; /* the result is subnormal */
    sum <<= up;
    exponent -= up;
  } else { /* it has lost up to three bits; often one */
    const uint64_t two = unisono_soft_less(sum >> (width + 2), 1) << 1;
    sum <<= two;
    const uint64_t last = unisono_soft_less(sum >> (width + 3), 1);
    sum <<= last;
    exponent -= two + last;
  }
  /* The implicit bit adds the last 1 to the exponent; a subnormal has neither. Rounding up
   * happens above half, and at half towards an even number. It may carry into the exponent, which
   * is then right too, up to infinity. */
  uint64_t bits = ((exponent - 1) << width) + (sum >> 3);
  bits += ((sum & 7) + (bits & 1) + 3) >> 3;
  if (bits > infinity) bits = infinity;
  return bits | (a & sign);
}

/* The upper half of a 128-bit product, and the lower one. */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_upper_product(uint64_t a, uint64_t b, uint64_t* lower) {
  const uint64_t a_low = (uint32_t)a, a_high = a >> 32;
  const uint64_t b_low = (uint32_t)b, b_high = b >> 32;
  const uint64_t low = a_low * b_low;
  const uint64_t left = a_low * b_high;
  const uint64_t right = a_high * b_low;
  const uint64_t middle = (low >> 32) + (uint32_t)left + (uint32_t)right;
  *lower = middle << 32 | (uint32_t)low;
  return a_high * b_high + (left >> 32) + (right >> 32) + (middle >> 32);
}

/* The product of two patterns, as in unisono_soft_add(). */
UNISONO_SOFT_FLOAT uint64_t unisono_soft_multiply(uint64_t a, uint64_t b, uint32_t width,
                                                  uint32_t top) {
  const uint64_t one = 1ULL << width;
  const uint64_t sign = 1ULL << top;
  const uint64_t infinity = sign - one;
  const uint64_t negative = (a ^ b) & sign;
  const uint64_t a_size = a & ~sign;
  const uint64_t b_size = b & ~sign;
  if (a_size > infinity) return a | one >> 1;
  if (b_size > infinity) return b | one >> 1;
  if (a_size == 0 || b_size == 0) {
    return a_size == infinity || b_size == infinity ? infinity | one >> 1 : negative;
  }
  if (a_size == infinity || b_size == infinity) return infinity | negative;
  /* Significands with their highest bit at bit 63, also of subnormal numbers. */
  const uint64_t a_small = unisono_soft_less(a_size, one);
  const uint64_t b_small = unisono_soft_less(b_size, one);
  const uint64_t a_part = (a_size & (one - 1)) | (1 - a_small) << width;
  const uint64_t b_part = (b_size & (one - 1)) | (1 - b_small) << width;
  const uint32_t a_zeros = unisono_leading_zeros(a_part);
  const uint32_t b_zeros = unisono_leading_zeros(b_part);
  uint64_t lower = 0;
  uint64_t upper = unisono_soft_upper_product(a_part << a_zeros, b_part << b_zeros, &lower);
  /* Offset by the largest exponent and more, so that no difference is below zero. */
  const uint64_t bias = (infinity >> width) >> 1;
  const uint64_t offset = 1ULL << 13;
  uint64_t exponent = offset + (a_size >> width) + a_small + (b_size >> width) + b_small +
                      2 * (63 - width) - a_zeros - b_zeros - bias + 1;
  if (upper >> 63 == 0) {
    upper = upper << 1 | lower >> 63;
    lower <<= 1;
    --exponent;
  }
  uint64_t lost = lower != 0;
  if (exponent <= offset) { /* subnormal: it has the exponent 1 and no implicit bit */
    uint64_t distance = offset + 1 - exponent;
    if (distance > 63) distance = 63;
    lost |= (upper & ((1ULL << distance) - 1)) != 0;
    upper >>= distance;
    exponent = offset + 1;
  }
  exponent -= offset;
  const uint32_t unused = 60 - width;
  const uint64_t rest = (upper & ((1ULL << unused) - 1)) | lost;
  const uint64_t product = upper >> unused | (rest != 0);
  uint64_t bits = ((exponent - 1) << width) + (product >> 3);
  bits += ((product & 7) + (bits & 1) + 3) >> 3;
  if (bits > infinity) bits = infinity;
  return bits | negative;
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
  return unisono_soft_add(a, b, 52, 63);
}

UNISONO_SOFT_FLOAT uint64_t unisono_float64_min(uint64_t a, uint64_t b) {
  return unisono_soft_extreme(a, b, 52, 1ULL << 63, 0);
}

UNISONO_SOFT_FLOAT uint64_t unisono_float64_max(uint64_t a, uint64_t b) {
  return unisono_soft_extreme(a, b, 52, 1ULL << 63, 1);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_add(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_add(a, b, 23, 31);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_min(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_extreme(a, b, 23, 1ULL << 31, 0);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_max(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_extreme(a, b, 23, 1ULL << 31, 1);
}

UNISONO_SOFT_FLOAT uint64_t unisono_float64_multiply(uint64_t a, uint64_t b) {
  return unisono_soft_multiply(a, b, 52, 63);
}

UNISONO_SOFT_FLOAT uint32_t unisono_float32_multiply(uint32_t a, uint32_t b) {
  return (uint32_t)unisono_soft_multiply(a, b, 23, 31);
}

/* Sums of 16-bit formats are rounded once, as if in binary32 and then again: a binary32 has more
 * than twice their digits. */
UNISONO_SOFT_FLOAT uint16_t unisono_float16_add(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_add(a, b, 10, 15);
}

UNISONO_SOFT_FLOAT uint16_t unisono_float16_min(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_extreme(a, b, 10, 1ULL << 15, 0);
}

UNISONO_SOFT_FLOAT uint16_t unisono_float16_max(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_extreme(a, b, 10, 1ULL << 15, 1);
}

UNISONO_SOFT_FLOAT uint16_t unisono_float16_multiply(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_multiply(a, b, 10, 15);
}

UNISONO_SOFT_FLOAT uint16_t unisono_bfloat16_add(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_add(a, b, 7, 15);
}

UNISONO_SOFT_FLOAT uint16_t unisono_bfloat16_min(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_extreme(a, b, 7, 1ULL << 15, 0);
}

UNISONO_SOFT_FLOAT uint16_t unisono_bfloat16_max(uint16_t a, uint16_t b) {
  return (uint16_t)unisono_soft_extreme(a, b, 7, 1ULL << 15, 1);
}

/* Subnormal products are rounded twice, as docs/reference/arithmetic.md says. */
UNISONO_SOFT_FLOAT uint16_t unisono_bfloat16_multiply(uint16_t a, uint16_t b) {
  const uint32_t product = unisono_float32_multiply((uint32_t)a << 16, (uint32_t)b << 16);
  const uint32_t is_nan = (product & 0x7FFFFFFFU) > 0x7F800000U;
  return (uint16_t)((is_nan ? product : product + 0x7FFFU + (product >> 16 & 1)) >> 16);
}
