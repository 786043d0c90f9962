/* SPDX-License-Identifier: BSD-3-Clause
 * Combining two blocks inside the NIC program, for every row of enum unisono_nic_combine, some
 * words at a time. The verifier follows a loop turn by turn, so a loop over all words of a block,
 * for each row, would be most of the time that loading takes. The calculations with many branches
 * are global functions, which it checks once, whatever the number of calls. For nic.bpf.c only.
 */
#pragma once

#include "arith/lanes.h"
#include "arith/soft_float.h"
#include "nic/program/bpf.bpf.h"
#include "nic/program/tables.h"

UNISONO_GLOBAL uint64_t min_float64(uint64_t a, uint64_t b) { return unisono_float64_min(a, b); }
UNISONO_GLOBAL uint64_t max_float64(uint64_t a, uint64_t b) { return unisono_float64_max(a, b); }

/* Both 32-bit elements of a word. */
#define UNISONO_HALVES(operation)                          \
  ((uint64_t)(uint32_t)operation(a >> 32, b >> 32) << 32 | \
   (uint32_t)operation((uint32_t)a, (uint32_t)b))

UNISONO_GLOBAL uint64_t min_float32_pair(uint64_t a, uint64_t b) {
  return UNISONO_HALVES(unisono_float32_min);
}
UNISONO_GLOBAL uint64_t max_float32_pair(uint64_t a, uint64_t b) {
  return UNISONO_HALVES(unisono_float32_max);
}

/* All four 16-bit elements of a word. */
#define UNISONO_QUARTERS(operation)                                          \
  ((uint64_t)(uint16_t)operation(a >> 48, b >> 48) << 48 |                   \
   (uint64_t)(uint16_t)operation(a >> 32 & 0xFFFF, b >> 32 & 0xFFFF) << 32 | \
   (uint64_t)(uint16_t)operation(a >> 16 & 0xFFFF, b >> 16 & 0xFFFF) << 16 | \
   (uint16_t)operation(a & 0xFFFF, b & 0xFFFF))

/* For a whole word, so that the verifier follows a loop over words with one call each. */
#define UNISONO_QUARTERS_FUNCTION(name)                         \
  UNISONO_GLOBAL uint64_t four_##name(uint64_t a, uint64_t b) { \
    return UNISONO_QUARTERS(unisono_##name);                    \
  }
UNISONO_QUARTERS_FUNCTION(float16_add)
UNISONO_QUARTERS_FUNCTION(float16_min)
UNISONO_QUARTERS_FUNCTION(float16_max)
UNISONO_QUARTERS_FUNCTION(bfloat16_add)
UNISONO_QUARTERS_FUNCTION(bfloat16_min)
UNISONO_QUARTERS_FUNCTION(bfloat16_max)

/* Products have so many branches that the verifier follows one element. */
UNISONO_GLOBAL uint64_t multiply_float64(uint64_t a, uint64_t b) {
  return unisono_float64_multiply(a, b);
}
UNISONO_GLOBAL uint64_t multiply_float32(uint64_t a, uint64_t b) {
  return unisono_float32_multiply((uint32_t)a, (uint32_t)b);
}
UNISONO_GLOBAL uint64_t multiply_float16(uint64_t a, uint64_t b) {
  return unisono_float16_multiply((uint16_t)a, (uint16_t)b);
}
UNISONO_GLOBAL uint64_t multiply_bfloat16(uint64_t a, uint64_t b) {
  return unisono_bfloat16_multiply((uint16_t)a, (uint16_t)b);
}
UNISONO_GLOBAL uint64_t four_float16_multiply(uint64_t a, uint64_t b) {
  return UNISONO_QUARTERS(multiply_float16);
}
UNISONO_GLOBAL uint64_t four_bfloat16_multiply(uint64_t a, uint64_t b) {
  return UNISONO_QUARTERS(multiply_bfloat16);
}

#define ADD_INT32(x, y) ((uint32_t)(x) + (uint32_t)(y))
#define MULTIPLY_INT32(x, y) ((uint32_t)(x) * (uint32_t)(y))

/* Global, as the verifier would follow both sides of each choice in each word. */
#define UNISONO_CHOICE_OF_HALVES(name, type, is_first)             \
  UNISONO_GLOBAL uint64_t name##_pair(uint64_t a, uint64_t b) {    \
    const type a_high = (type)(a >> 32), b_high = (type)(b >> 32); \
    const type a_low = (type)a, b_low = (type)b;                   \
    return ((is_first(a_high, b_high) ? a : b) & (~0ULL << 32)) |  \
           (uint32_t)(is_first(a_low, b_low) ? a : b);             \
  }
#define UNISONO_NOT_GREATER(x, y) ((x) <= (y))
#define UNISONO_NOT_LESS(x, y) ((x) >= (y))
UNISONO_CHOICE_OF_HALVES(min_int32, int32_t, UNISONO_NOT_GREATER)
UNISONO_CHOICE_OF_HALVES(max_int32, int32_t, UNISONO_NOT_LESS)
UNISONO_CHOICE_OF_HALVES(min_uint32, uint32_t, UNISONO_NOT_GREATER)
UNISONO_CHOICE_OF_HALVES(max_uint32, uint32_t, UNISONO_NOT_LESS)

/* Short expressions: so many that their call costs little for each. */
#define UNISONO_SHORT_AT_ONCE (5 * UNISONO_AT_ONCE)
_Static_assert(UNISONO_NIC_WORDS_MAX % UNISONO_SHORT_AT_ONCE == 0, "no call goes beyond a block");

/* A function that combines some words: of both blocks, from number `first` on. */
#define UNISONO_SOME_WORDS(name)                                                                   \
  UNISONO_GLOBAL int name(struct unisono_nic_block* target, const struct unisono_nic_block* other, \
                          uint32_t first)

#define UNISONO_IS_OUTSIDE(most) (!target || !other || first > UNISONO_NIC_WORDS_MAX - (most))

/* result[i] = `expression` of a = result[i] and b = operand[i], for those of `most` words that the
 * vector has. */
#define UNISONO_COMBINE_MOST(most, expression)         \
  uint64_t* const result = &target->data[first];       \
  const uint64_t* const operand = &other->data[first]; \
  for (uint32_t i = 0; i < (most); ++i) {              \
    if (first + i >= words) break;                     \
    const uint64_t a = result[i];                      \
    const uint64_t b = operand[i];                     \
    result[i] = (expression);                          \
  }                                                    \
  return 0

#define UNISONO_COMBINE(expression) UNISONO_COMBINE_MOST(UNISONO_AT_ONCE, expression)

#define UNISONO_COMBINE_ROW(row, expression) \
  case row: {                                \
    UNISONO_COMBINE(expression);             \
  }

#define UNISONO_COMBINE_SHORT(row, expression)               \
  case row: {                                                \
    UNISONO_COMBINE_MOST(UNISONO_SHORT_AT_ONCE, expression); \
  }

/* Sums of floating-point numbers are inlined into their loop: a call for each word would take much
 * of their time. */
UNISONO_SOME_WORDS(add_float64) {
  if (UNISONO_IS_OUTSIDE(UNISONO_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  UNISONO_COMBINE(unisono_float64_add(a, b));
}

UNISONO_SOME_WORDS(add_float32) {
  if (UNISONO_IS_OUTSIDE(UNISONO_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  UNISONO_COMBINE(UNISONO_HALVES(unisono_float32_add));
}

/* Rows that differ in the width of elements and little else share a loop. Their parameters are
 * hidden from the verifier, which would otherwise follow the loop for each of them. */
struct lanes {
  uint64_t high;
  uint64_t flip;     /* of minima and maxima, as are ... */
  uint64_t greatest; /* ... these */
  uint64_t both;     /* of logical operators: results that they take, all bits or none */
  uint64_t either;
  uint64_t one;
  uint32_t bits;
};

/* Rows come in groups by width, in this order: 64, 32, 16, 8. */
UNISONO_INLINE uint32_t width_of(uint32_t row, uint32_t first) {
  return 64U >> ((row - first) & 3);
}

UNISONO_INLINE struct lanes lanes_of(uint32_t bits) {
  const struct lanes lanes = {.high = unisono_soft_opaque(unisono_lanes_high(bits)),
                              .bits = (uint32_t)unisono_soft_opaque(bits) & 127};
  return lanes;
}

UNISONO_SOME_WORDS(add_lanes) {
  if (UNISONO_IS_OUTSIDE(UNISONO_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  const uint32_t row = target->combine & UNISONO_NIC_COMBINE_MASK;
  const struct lanes lanes = lanes_of(row == UNISONO_NIC_SUM_INT8 ? 8 : 16);
  UNISONO_COMBINE(unisono_lanes_add(a, b, lanes.high));
}

UNISONO_SOME_WORDS(find_extremes) {
  if (UNISONO_IS_OUTSIDE(UNISONO_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  const uint32_t row = target->combine & UNISONO_NIC_COMBINE_MASK;
  const int greatest = row >= UNISONO_NIC_MAX_INT16;
  const uint32_t kind = row - (greatest ? UNISONO_NIC_MAX_INT16 : UNISONO_NIC_MIN_INT16);
  struct lanes lanes = lanes_of((kind & 1) != 0 ? 8 : 16);
  lanes.flip = unisono_soft_opaque(kind < 2 ? lanes.high : 0);
  lanes.greatest = unisono_soft_opaque(-(uint64_t)(greatest != 0));
  UNISONO_COMBINE(unisono_lanes_extreme(a, b, lanes.high, lanes.bits, lanes.flip, lanes.greatest));
}

UNISONO_INLINE uint64_t combine_truth(uint64_t a, uint64_t b, const struct lanes* lanes) {
  return (a & b & lanes->both) | ((a | b) & lanes->either) | ((a ^ b) & lanes->one);
}

UNISONO_SOME_WORDS(combine_truths) {
  if (UNISONO_IS_OUTSIDE(UNISONO_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  const uint32_t row = target->combine & UNISONO_NIC_COMBINE_MASK;
  const uint32_t kind = (row - UNISONO_NIC_BOTH_INT64) >> 2;
  struct lanes lanes = lanes_of(width_of(row, UNISONO_NIC_BOTH_INT64));
  lanes.both = unisono_soft_opaque(-(uint64_t)(kind == 0));
  lanes.either = unisono_soft_opaque(-(uint64_t)(kind == 1));
  lanes.one = unisono_soft_opaque(-(uint64_t)(kind == 2));
  UNISONO_COMBINE(combine_truth(unisono_lanes_truth(a, lanes.high, lanes.bits),
                                unisono_lanes_truth(b, lanes.high, lanes.bits), &lanes));
}

UNISONO_GLOBAL uint64_t multiply_int8(uint64_t a, uint64_t b) {
  return unisono_lanes_multiply(a, b, 8);
}
UNISONO_GLOBAL uint64_t multiply_int16(uint64_t a, uint64_t b) {
  return unisono_lanes_multiply(a, b, 16);
}

UNISONO_GLOBAL uint64_t multiply_float32_pair(uint64_t a, uint64_t b) {
  return UNISONO_HALVES(multiply_float32);
}

/* Products, and what else has a function for a word. */
UNISONO_SOME_WORDS(combine_soft) {
  if (UNISONO_IS_OUTSIDE(UNISONO_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  switch (target->combine & UNISONO_NIC_COMBINE_MASK) {
    UNISONO_COMBINE_ROW(UNISONO_NIC_SUM_FLOAT16, four_float16_add(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_SUM_BFLOAT16, four_bfloat16_add(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_MIN_FLOAT16, four_float16_min(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_MIN_BFLOAT16, four_bfloat16_min(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_MAX_FLOAT16, four_float16_max(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_MAX_BFLOAT16, four_bfloat16_max(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_FLOAT64, multiply_float64(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_FLOAT32, multiply_float32_pair(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_FLOAT16, four_float16_multiply(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_BFLOAT16, four_bfloat16_multiply(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_INT64, a * b)
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_INT32, UNISONO_HALVES(MULTIPLY_INT32))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_INT16, multiply_int16(a, b))
    UNISONO_COMBINE_ROW(UNISONO_NIC_PRODUCT_INT8, multiply_int8(a, b))
  }
  return 0;
}

UNISONO_SOME_WORDS(combine_short) {
  if (UNISONO_IS_OUTSIDE(UNISONO_SHORT_AT_ONCE)) return 0;
  const uint32_t words = target->words;
  switch (target->combine & UNISONO_NIC_COMBINE_MASK) {
    UNISONO_COMBINE_SHORT(UNISONO_NIC_SUM_INT64, a + b)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_SUM_INT32, UNISONO_HALVES(ADD_INT32))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MIN_INT64, (int64_t)b < (int64_t)a ? b : a)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MIN_UINT64, b < a ? b : a)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MIN_FLOAT64, min_float64(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MIN_INT32, min_int32_pair(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MIN_UINT32, min_uint32_pair(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MIN_FLOAT32, min_float32_pair(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MAX_INT64, (int64_t)a < (int64_t)b ? b : a)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MAX_UINT64, a < b ? b : a)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MAX_FLOAT64, max_float64(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MAX_INT32, max_int32_pair(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MAX_UINT32, max_uint32_pair(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_MAX_FLOAT32, max_float32_pair(a, b))
    UNISONO_COMBINE_SHORT(UNISONO_NIC_AND, a & b)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_OR, a | b)
    UNISONO_COMBINE_SHORT(UNISONO_NIC_XOR, a ^ b)
  }
  return 0;
}

struct two_blocks {
  struct unisono_nic_block* target;
  const struct unisono_nic_block* other;
};

static long combine_short_words(uint32_t turn, struct two_blocks* blocks) {
  combine_short(blocks->target, blocks->other, turn * UNISONO_SHORT_AT_ONCE);
  return 0;
}

static long combine_long_words(uint32_t turn, struct two_blocks* blocks) {
  struct unisono_nic_block* target = blocks->target;
  const struct unisono_nic_block* other = blocks->other;
  const uint32_t row = target->combine & UNISONO_NIC_COMBINE_MASK;
  const uint32_t first = turn * UNISONO_AT_ONCE;
  if (row >= UNISONO_NIC_BOTH_INT64) {
    combine_truths(target, other, first);
  } else if (row == UNISONO_NIC_SUM_FLOAT64) {
    add_float64(target, other, first);
  } else if (row == UNISONO_NIC_SUM_FLOAT32) {
    add_float32(target, other, first);
  } else if (row == UNISONO_NIC_SUM_INT16 || row == UNISONO_NIC_SUM_INT8) {
    add_lanes(target, other, first);
  } else if ((row >= UNISONO_NIC_MIN_INT16 && row <= UNISONO_NIC_MIN_UINT8) ||
             (row >= UNISONO_NIC_MAX_INT16 && row <= UNISONO_NIC_MAX_UINT8)) {
    find_extremes(target, other, first);
  } else {
    combine_soft(target, other, first);
  }
  return 0;
}

/* target = target op other. Both are for the same operation: combine and words agree. */
UNISONO_INLINE void combine_blocks(struct unisono_nic_block* target,
                                   const struct unisono_nic_block* other) {
  struct two_blocks blocks = {.target = target, .other = other};
  const uint32_t words = target->words;
  const uint32_t row = target->combine & UNISONO_NIC_COMBINE_MASK;
  const int is_short =
      row <= UNISONO_NIC_XOR && row != UNISONO_NIC_SUM_FLOAT64 && row != UNISONO_NIC_SUM_FLOAT32;
  const uint32_t at_once = is_short ? UNISONO_SHORT_AT_ONCE : UNISONO_AT_ONCE;
  /* Most vectors are short, and for one call a loop would cost more than the call. */
  if (words <= at_once) {
    is_short ? combine_short_words(0, &blocks) : combine_long_words(0, &blocks);
  } else if (is_short) {
    bpf_loop((words + UNISONO_SHORT_AT_ONCE - 1) / UNISONO_SHORT_AT_ONCE, combine_short_words,
             &blocks, 0);
  } else {
    bpf_loop((words + UNISONO_AT_ONCE - 1) / UNISONO_AT_ONCE, combine_long_words, &blocks, 0);
  }
}
