// SPDX-License-Identifier: BSD-3-Clause
// The factor by which a test does less under a sanitizer, which slows threads and memory several
// times. It is printed once per program, so that a log shows the size of the test. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNISONO_TEST_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define UNISONO_TEST_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNISONO_TEST_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define UNISONO_TEST_ASAN 1
#endif

namespace unisono::harness {

#if defined(UNISONO_TEST_TSAN)
inline constexpr int kSlowdown = 12;
inline constexpr const char* kSanitizer = "thread sanitizer";
inline constexpr bool kThreadSanitizer = true;
#elif defined(UNISONO_TEST_ASAN)
inline constexpr int kSlowdown = 4;
inline constexpr const char* kSanitizer = "address sanitizer";
inline constexpr bool kThreadSanitizer = false;
#else
inline constexpr int kSlowdown = 1;
inline constexpr const char* kSanitizer = "no sanitizer";
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr bool kSanitized = kSlowdown > 1;

// `repetitions` in a plain build, fewer under a sanitizer, at least 1.
inline std::int64_t scaled(std::int64_t repetitions) {
  static const bool printed = [] {
    std::printf("[  SCALE   ] 1/%d of the repetitions (%s)\n", kSlowdown, kSanitizer);
    return true;
  }();
  static_cast<void>(printed);
  return std::max<std::int64_t>(1, repetitions / kSlowdown);
}

}  // namespace unisono::harness
