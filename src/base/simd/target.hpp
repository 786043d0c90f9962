// SPDX-License-Identifier: BSD-3-Clause
// Which Highway targets vector code is compiled for: SSE4, AVX2 and AVX3 (AVX-512) on x86-64, NEON
// on AArch64, and plain C++ for everything else. Every target costs compile time and has to be
// tested, so those without vectors of a fixed length and those that add nothing here are left out.
// Include before any header of Highway.
#pragma once

// A build with sanitizers leaves AVX3 out if its machine cannot run it (UnisonoTargets.cmake).
#ifdef UNISONO_WITHOUT_AVX3
#define UNISONO_LEFT_OUT HWY_AVX3
#else
#define UNISONO_LEFT_OUT 0
#endif
#define HWY_DISABLED_TARGETS \
  (UNISONO_LEFT_OUT | HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// To be used in #if inside the code that is compiled once per target.
#define UNISONO_SIMD_TARGETS (HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_NEON)
#define UNISONO_HAVE_SIMD \
  ((HWY_TARGET & UNISONO_SIMD_TARGETS) != 0 && (HWY_ARCH_X86_64 || HWY_ARCH_ARM_A64))
