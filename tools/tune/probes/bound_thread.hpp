// SPDX-License-Identifier: BSD-3-Clause
// BoundThread: keeps the calling thread on one core of those that it may use, for as long as it
// lives. Threads that talk to each other would otherwise share a core for whole probes. Where cores
// are fewer than places, places share them. One thread.
#pragma once

#include <sched.h>

namespace unisono::tools::tune {

class BoundThread {
 public:
  // Place 0 is the first usable core of `usable`, and so on, cyclically.
  BoundThread(const cpu_set_t& usable, int place) {
    CPU_ZERO(&before_);
    bound_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
    const int cores = CPU_COUNT(&usable);
    int rest = cores > 0 ? place % cores : 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &usable) && rest-- == 0) CPU_SET(core, &one);
    }
    bound_ = bound_ && sched_setaffinity(0, sizeof one, &one) == 0;
  }
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;
  ~BoundThread() {
    if (bound_) sched_setaffinity(0, sizeof before_, &before_);
  }

  // Those of the calling thread; none if the kernel does not say.
  static cpu_set_t usable() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    return set;
  }

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

}  // namespace unisono::tools::tune
