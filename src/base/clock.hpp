// SPDX-License-Identifier: BSD-3-Clause
// The one clock of the library: monotonic nanoseconds, comparable between the processes of one
// machine. Any thread; cheap enough for the data path (vDSO, no system call). And the processor
// time of a thread, which is a system call.
#pragma once

#include <cstdint>

namespace unisono::base {

inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns();
// The processor time of the calling thread.
std::int64_t thread_time_ns();

// Milliseconds until `deadline_ns`, as poll(2) wants them: rounded up, so that the caller does not
// spin at the end. 0 if the deadline has passed.
int poll_timeout_ms(std::int64_t deadline_ns);

}  // namespace unisono::base
