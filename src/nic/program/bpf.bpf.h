/* SPDX-License-Identifier: BSD-3-Clause
 * Common to all BPF files of this folder: the kernel's headers, and how functions are compiled. The
 * verifier checks a global function separately, once; everything else is inlined.
 */
#pragma once

#include <linux/bpf.h>
#include <stdint.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define UNISONO_INLINE static inline __attribute__((always_inline))
#define UNISONO_GLOBAL __attribute__((noinline))

/* Loops over the words of a block handle so many in a turn, without a comparison for each. */
#define UNISONO_AT_ONCE 7
