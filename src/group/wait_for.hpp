// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits for what is no operation of a communicator: like for one, it spins, gives the
// core away, sleeps, carries the network and looks for deaths. For Communicator's own files.
#pragma once

#include <sched.h>

#include "base/clock.hpp"
#include "group/communicator.hpp"

namespace unisono::group {

template <class Turn>
auto Communicator::wait_for(const Turn& turn) -> decltype(turn()) {
  Communicator* const self[] = {this};
  wait::Waiter waiter(job_.wait_policy(), job_.foreign_load());
  for (;;) {
    progress();
    examine(false);
    // After the alarm was looked at: what comes now ends the sleep.
    if (auto result = turn(); !result || *result) return result;
    switch (waiter.next()) {
      case wait::Waiter::Next::spin:
        wait::spin_pause();
        break;
      case wait::Waiter::Next::yield:
        sched_yield();
        break;
      case wait::Waiter::Next::sleep:
        if (sleep(self, job_.watch_interval_ns())) waiter.woken();
        break;
    }
    job_.watch(base::now_ns());
  }
}

}  // namespace unisono::group
