// SPDX-License-Identifier: BSD-3-Clause
// wait_until: the loop in which a rank of a job waits for the others. The caller defines the work
// of each turn, the end of the wait, and how the rank sleeps. The Waiter decides between spinning,
// yielding and sleeping. README.md names the waits that have loops of their own. Any thread.
#pragma once

#include <sched.h>

#include "wait/waiter.hpp"

namespace unisono::wait {

// turn(): does available work and returns whether the wait is over. at_once(): whether to sleep
// now, whatever the Waiter says. sleep(): sleeps, checks for progress, and returns whether the rank
// was woken, so that more may come soon.
template <class Turn, class AtOnce, class Sleep>
void wait_until(Waiter& waiter, const Turn& turn, const AtOnce& at_once, const Sleep& sleep) {
  while (!turn()) {
    switch (at_once() ? Waiter::Next::sleep : waiter.next()) {
      case Waiter::Next::spin:
        spin_pause();
        break;
      case Waiter::Next::yield:
        sched_yield();
        break;
      case Waiter::Next::sleep:
        if (sleep()) waiter.woken();
        break;
    }
  }
}

}  // namespace unisono::wait
