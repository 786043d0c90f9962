// SPDX-License-Identifier: BSD-3-Clause
// Waits until what another thread or process does is seen. A rank that looks without a pause takes
// a core from those that it waits for, and system time for as long as it waits. For tests only.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace unisono::harness {

template <class Condition>
void await(Condition&& holds) {
  constexpr int kLooks = 1000;  // without a pause, for what comes soon
  for (int look = 0; look < kLooks; ++look) {
    if (holds()) return;
    sched_yield();
  }
  while (!holds()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace unisono::harness
