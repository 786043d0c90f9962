// SPDX-License-Identifier: BSD-3-Clause
// CommunicatorWait: a rank's wait for communicators. It progresses their operations, checks for
// failures, and sleeps in between (wait/wait_until.hpp). For Communicator's own files.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.hpp"
#include "wait/wait_until.hpp"

namespace unisono::comm {

class CommunicatorWait {
 public:
  // All of one rank; at least one.
  explicit CommunicatorWait(std::span<Communicator* const> communicators)
      : communicators_(communicators), job_(communicators.front()->job_) {}

  // Waits until `over()` is true. It is called before and after each check for failures: an event
  // that comes after the check ends the sleep.
  template <class Over>
  void until(const Over& over) {
    wait::Waiter waiter(job_.cores().wait_policy(), job_.cores().contention());
    for (Communicator* c : communicators_) c->loan_.take_back();
    const auto turn = [&] {
      for (Communicator* c : communicators_) c->advance();
      if (over()) return true;
      carry_others();
      for (Communicator* c : communicators_) c->watchdog_.examine(false);
      if (job_.carry_on && ++turns_ % wait::CarryOn::kTurns == 0) job_.carry_on();
      return over();
    };
    wait::wait_until(
        waiter, turn, [this] { return sleeps_at_once(); }, [this] { return sleep(); });
  }

 private:
  bool sleeps_at_once() const;
  // This rank's other communicators that no other thread progresses now; true if there are any.
  bool carry_others() { return job_.agent() != nullptr && job_.agent()->carry_in_wait(); }
  bool sleep();
  bool sleep_once(engine::SleepTarget target);
  engine::SleepTarget prepare_operations();
  void limit_sleep_by_carry_on(engine::SleepTarget& target);
  void change_credit_sleepers(bool are_asleep);
  void ask_for_interrupt(bool woken);

  std::span<Communicator* const> communicators_;
  job::Job& job_;
  std::uint32_t turns_ = 0;
  std::int64_t carry_on_sleep_ns_ = wait::CarryOn::kFirstSleepNs;
  std::int64_t asked_ns_ = 0;  // when the application was asked for an interrupt; 0: never
};

}  // namespace unisono::comm
