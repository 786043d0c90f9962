/* SPDX-License-Identifier: BSD-3-Clause
 * Combining two blocks inside the NIC program, for every row of enum unisono_nic_combine. Loops
 * have a fixed bound, so that the verifier follows them; the calculations with many branches are
 * global functions, which it checks once, whatever the number of calls. For nic.bpf.c only.
 */
#pragma once

#include "arith/soft_float.h"
#include "nic/program/bpf.bpf.h"
#include "nic/program/tables.h"

UNISONO_GLOBAL uint64_t add_float64(uint64_t a, uint64_t b) { return unisono_float64_add(a, b); }
UNISONO_GLOBAL uint64_t min_float64(uint64_t a, uint64_t b) { return unisono_float64_min(a, b); }
UNISONO_GLOBAL uint64_t max_float64(uint64_t a, uint64_t b) { return unisono_float64_max(a, b); }
UNISONO_GLOBAL uint64_t add_float32(uint64_t a, uint64_t b) {
  return unisono_float32_add((uint32_t)a, (uint32_t)b);
}
UNISONO_GLOBAL uint64_t min_float32(uint64_t a, uint64_t b) {
  return unisono_float32_min((uint32_t)a, (uint32_t)b);
}
UNISONO_GLOBAL uint64_t max_float32(uint64_t a, uint64_t b) {
  return unisono_float32_max((uint32_t)a, (uint32_t)b);
}

/* Both 32-bit elements of a word. */
#define UNISONO_HALVES(operation)                          \
  ((uint64_t)(uint32_t)operation(a >> 32, b >> 32) << 32 | \
   (uint32_t)operation((uint32_t)a, (uint32_t)b))

#define ADD_INT32(x, y) ((uint32_t)(x) + (uint32_t)(y))
#define MIN_INT32(x, y) ((int32_t)(y) < (int32_t)(x) ? (y) : (x))
#define MAX_INT32(x, y) ((int32_t)(x) < (int32_t)(y) ? (y) : (x))
#define MIN_UINT32(x, y) ((uint32_t)(y) < (uint32_t)(x) ? (y) : (x))
#define MAX_UINT32(x, y) ((uint32_t)(x) < (uint32_t)(y) ? (y) : (x))

/* target[i] = `expression` of a = target[i] and b = other[i], for all words. */
#define UNISONO_EACH_WORD(row, expression)        \
  case row:                                       \
    for (i = 0; i < UNISONO_NIC_WORDS_MAX; ++i) { \
      if (i >= words) break;                      \
      const uint64_t a = target->data[i];         \
      const uint64_t b = other->data[i];          \
      target->data[i] = (expression);             \
    }                                             \
    return 0

/* Sums of floating-point numbers are long code, so calls of them take much of their time. Inlined
 * into the loop over all words, the verifier would check them for each word. So one call sums
 * several words. */
#define UNISONO_AT_ONCE 7
_Static_assert(UNISONO_NIC_WORDS_MAX % UNISONO_AT_ONCE == 0, "no call goes beyond a block");

#define UNISONO_SEVERAL_WORDS(name, expression)                                                    \
  UNISONO_GLOBAL int name(struct unisono_nic_block* target, const struct unisono_nic_block* other, \
                          uint32_t first) {                                                        \
    if (!target || !other || first > UNISONO_NIC_WORDS_MAX - UNISONO_AT_ONCE) return 0;            \
    for (uint32_t i = first; i < first + UNISONO_AT_ONCE; ++i) {                                   \
      const uint64_t a = target->data[i];                                                          \
      const uint64_t b = other->data[i];                                                           \
      target->data[i] = (expression);                                                              \
    }                                                                                              \
    return 0;                                                                                      \
  }

UNISONO_SEVERAL_WORDS(add_float64_words, unisono_float64_add(a, b))
UNISONO_SEVERAL_WORDS(add_float32_words, UNISONO_HALVES(unisono_float32_add))

/* The same for all words; those that do not fill a call, one by one. */
#define UNISONO_EACH_WORD_BY(row, several, expression)             \
  case row:                                                        \
    for (i = 0; i < UNISONO_NIC_WORDS_MAX; i += UNISONO_AT_ONCE) { \
      if (i + UNISONO_AT_ONCE > words) break;                      \
      several(target, other, i);                                   \
    }                                                              \
    for (; i < UNISONO_NIC_WORDS_MAX; ++i) {                       \
      if (i >= words) break;                                       \
      const uint64_t a = target->data[i];                          \
      const uint64_t b = other->data[i];                           \
      target->data[i] = (expression);                              \
    }                                                              \
    return 0

/* target = target op other. Both are for the same operation: combine and words agree. */
UNISONO_GLOBAL int combine_blocks(struct unisono_nic_block* target,
                                  const struct unisono_nic_block* other) {
  if (!target || !other) return 0;
  const uint32_t words = target->words;
  uint32_t i;
  switch (target->combine & UNISONO_NIC_COMBINE_MASK) {
    UNISONO_EACH_WORD(UNISONO_NIC_SUM_INT64, a + b);
    UNISONO_EACH_WORD(UNISONO_NIC_SUM_INT32, UNISONO_HALVES(ADD_INT32));
    UNISONO_EACH_WORD_BY(UNISONO_NIC_SUM_FLOAT64, add_float64_words, add_float64(a, b));
    UNISONO_EACH_WORD_BY(UNISONO_NIC_SUM_FLOAT32, add_float32_words, UNISONO_HALVES(add_float32));
    UNISONO_EACH_WORD(UNISONO_NIC_MIN_INT64, (int64_t)b < (int64_t)a ? b : a);
    UNISONO_EACH_WORD(UNISONO_NIC_MIN_UINT64, b < a ? b : a);
    UNISONO_EACH_WORD(UNISONO_NIC_MIN_FLOAT64, min_float64(a, b));
    UNISONO_EACH_WORD(UNISONO_NIC_MIN_INT32, UNISONO_HALVES(MIN_INT32));
    UNISONO_EACH_WORD(UNISONO_NIC_MIN_UINT32, UNISONO_HALVES(MIN_UINT32));
    UNISONO_EACH_WORD(UNISONO_NIC_MIN_FLOAT32, UNISONO_HALVES(min_float32));
    UNISONO_EACH_WORD(UNISONO_NIC_MAX_INT64, (int64_t)a < (int64_t)b ? b : a);
    UNISONO_EACH_WORD(UNISONO_NIC_MAX_UINT64, a < b ? b : a);
    UNISONO_EACH_WORD(UNISONO_NIC_MAX_FLOAT64, max_float64(a, b));
    UNISONO_EACH_WORD(UNISONO_NIC_MAX_INT32, UNISONO_HALVES(MAX_INT32));
    UNISONO_EACH_WORD(UNISONO_NIC_MAX_UINT32, UNISONO_HALVES(MAX_UINT32));
    UNISONO_EACH_WORD(UNISONO_NIC_MAX_FLOAT32, UNISONO_HALVES(max_float32));
    UNISONO_EACH_WORD(UNISONO_NIC_AND, a & b);
    UNISONO_EACH_WORD(UNISONO_NIC_OR, a | b);
    UNISONO_EACH_WORD(UNISONO_NIC_XOR, a ^ b);
  }
  return 0;
}
