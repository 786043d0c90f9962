// SPDX-License-Identifier: BSD-3-Clause
// Futex: sleeping on a word of memory that processes share, and waking all that sleep on it. The
// callers decide when a sleeper is to be woken. Any thread.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/clock.hpp"

namespace unisono::wait {

inline long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
                  const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

// Sleeps while the word has the value `expected`, but not longer than the time. True: it was woken,
// or the word had another value.
inline bool futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::int64_t timeout_ns) {
  const timespec timeout{.tv_sec = timeout_ns / base::kSecond,
                         .tv_nsec = timeout_ns % base::kSecond};
  return futex(word, FUTEX_WAIT, expected, &timeout) == 0 || errno == EAGAIN;
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace unisono::wait
