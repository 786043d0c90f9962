/* SPDX-License-Identifier: BSD-3-Clause
 * What every BPF file of this folder needs: the kernel's headers, and how functions are compiled. A
 * global function is checked by the verifier by itself, once; everything else is inlined.
 */
#pragma once

#include <linux/bpf.h>
#include <stdint.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define UNISONO_INLINE static inline __attribute__((always_inline))
#define UNISONO_GLOBAL __attribute__((noinline))
