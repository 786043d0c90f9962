// SPDX-License-Identifier: BSD-3-Clause
// The cores that this process may use, for programs that show the machine. Main thread.
#pragma once

#include <sched.h>

#include <vector>

namespace unisono::bench {

// Empty if the kernel does not say.
inline std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// If that fails, the process goes on where it may run.
inline void pin_to(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace unisono::bench
