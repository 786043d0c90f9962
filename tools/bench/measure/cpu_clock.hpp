// SPDX-License-Identifier: BSD-3-Clause
// Processor time in nanoseconds, of the calling thread and of all threads of the process, the
// library's agent included. Any thread.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/clock.hpp"

namespace unisono::tools::bench {

inline std::int64_t read_cpu_clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * base::kSecond + now.tv_nsec;
}

struct CpuTime {
  std::int64_t caller_ns = 0;
  std::int64_t process_ns = 0;

  static CpuTime now() {
    return {read_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID),
            read_cpu_clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
  }
  // Time of the other threads.
  std::int64_t agent_ns() const { return process_ns > caller_ns ? process_ns - caller_ns : 0; }
};

inline CpuTime operator-(const CpuTime& later, const CpuTime& earlier) {
  return {later.caller_ns - earlier.caller_ns, later.process_ns - earlier.process_ns};
}
inline CpuTime& operator+=(CpuTime& sum, const CpuTime& time) {
  sum.caller_ns += time.caller_ns;
  sum.process_ns += time.process_ns;
  return sum;
}

}  // namespace unisono::tools::bench
