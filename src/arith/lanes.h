/* SPDX-License-Identifier: BSD-3-Clause
 * Integers of 8, 16, 32 or 64 bits as lanes of a 64-bit word: sums, minima, maxima, products and
 * logical operators on all lanes at once, for where there are no vector registers (eBPF). `high`
 * has the highest bit of each lane. Plain C11, which is C++ too. The results are those of the
 * kernels. Pure functions; any thread.
 */
#pragma once

#include <stdint.h>

#define UNISONO_LANES static inline __attribute__((always_inline))

/* The highest bit of each lane of so many bits. */
UNISONO_LANES uint64_t unisono_lanes_high(uint32_t bits) {
  if (bits == 8) return 0x8080808080808080ULL;
  if (bits == 16) return 0x8000800080008000ULL;
  return bits == 32 ? 0x8000000080000000ULL : 0x8000000000000000ULL;
}

/* The sums; no carry leaves its lane. */
UNISONO_LANES uint64_t unisono_lanes_add(uint64_t a, uint64_t b, uint64_t high) {
  return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}

/* All bits of each lane in which a < b, as unsigned numbers. */
UNISONO_LANES uint64_t unisono_lanes_less(uint64_t a, uint64_t b, uint64_t high, uint32_t bits) {
  const uint64_t low_is_enough = (a | high) - (b & ~high);
  const uint64_t less = ((~a & b) | (~(a ^ b) & ~low_is_enough)) & high;
  return (less - (less >> (bits - 1))) | less;
}

/* The lesser or, if `greatest`, the greater. `flip` has `high` for signed numbers, otherwise 0. */
UNISONO_LANES uint64_t unisono_lanes_extreme(uint64_t a, uint64_t b, uint64_t high, uint32_t bits,
                                             uint64_t flip, uint64_t greatest) {
  const uint64_t left = (greatest ? a : b) ^ flip;
  const uint64_t right = (greatest ? b : a) ^ flip;
  const uint64_t takes_b = unisono_lanes_less(left, right, high, bits);
  return (b & takes_b) | (a & ~takes_b);
}

/* 1 in each lane that is not zero. */
UNISONO_LANES uint64_t unisono_lanes_truth(uint64_t a, uint64_t high, uint32_t bits) {
  return ((((a & ~high) + ~high) | a) & high) >> (bits - 1);
}

/* The products modulo 2^bits. */
UNISONO_LANES uint64_t unisono_lanes_multiply(uint64_t a, uint64_t b, uint32_t bits) {
  if (bits == 64) return a * b;
  const uint64_t lane = (1ULL << bits) - 1;
  uint64_t product = 0;
  for (uint32_t shift = 0; shift < 64; shift += bits) {
    product |= ((a >> shift & lane) * (b >> shift & lane) & lane) << shift;
  }
  return product;
}
