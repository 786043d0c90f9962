// SPDX-License-Identifier: BSD-3-Clause
// CommunicatorWait: a rank's wait for communicators. It progresses their operations, checks for
// failures, and sleeps in between (wait/wait_until.hpp). For Communicator's own files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "comm/communicator.hpp"
#include "comm/early_end.hpp"
#include "wait/wait_until.hpp"

namespace unisono::comm {

class CommunicatorWait {
 public:
  // At least one. They may be of several jobs of this process.
  explicit CommunicatorWait(std::span<Communicator* const> communicators)
      : communicators_(communicators), job_(communicators.front()->job_) {
    if (communicators.size() > 1) find_other_jobs();
  }

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
      if (++turns_ % carry_on_pace_.turns() == 0 && carry_on()) waiter.woken();
      return over();
    };
    wait::wait_until(
        waiter, turn, [this] { return sleeps_at_once(); }, [this] { return sleep(); });
    for_each_job([](job::Job& job) {
      if (job.network() != nullptr) job.network()->agent().note_transfers();
    });
  }

  // The same for a wait of this rank alone, which ends no operation: also until the time limit of
  // operations, or the application's interrupt. Then it tells how it ended.
  template <class Over>
  std::optional<EarlyEnd> alone(const Over& over) {
    const std::int64_t limit_ns = job_.settings().time_ns(base::Setting::timeout);
    const std::int64_t deadline_ns = base::now_ns() + limit_ns;
    bool is_over = false;
    ends_operations_ = false;
    until([&] {
      const std::int64_t now = base::now_ns();
      job_.watch().look(now);
      is_over = over();
      return is_over || answer_ != 0 || (limit_ns > 0 && now > deadline_ns);
    });
    if (is_over) return std::nullopt;
    if (answer_ == 0) return EarlyEnd::after(limit_ns);
    return answer_ == Interrupt::kLate ? EarlyEnd::at_deadline() : EarlyEnd::by_interrupt();
  }

 private:
  bool sleeps_at_once() const;
  void find_other_jobs();
  // The caller's own communication. True if messages of it come in a row.
  bool carry_on();
  // Before a sleep: whether there is a reason to do without it.
  bool stays_awake();
  // This rank's other communicators that no other thread progresses now; true if there are any.
  bool carry_others() {
    bool any = false;
    for_each_job(
        [&any](job::Job& job) { any |= job.agent() != nullptr && job.agent()->carry_in_wait(); });
    return any;
  }
  template <class Function>
  void for_each_job(const Function& function) {
    function(job_);
    for (job::Job* job : other_jobs_) function(*job);
  }
  bool sleep();
  bool sleep_once(engine::SleepTarget target);
  engine::SleepTarget prepare_operations();
  void limit_sleep_by_carry_on(engine::SleepTarget& target);
  void change_credit_sleepers(bool are_asleep);
  void ask_for_interrupt(bool woken);

  std::span<Communicator* const> communicators_;
  job::Job& job_;                      // in which it sleeps
  std::vector<job::Job*> other_jobs_;  // at which it looks now and then
  std::uint32_t turns_ = 0;
  wait::CarryOnPace carry_on_pace_;
  bool ends_operations_ = true;  // where the application says so
  int answer_ = 0;               // of the application, in a wait of this rank alone
  std::int64_t asked_ns_ = 0;    // when the application was asked for an interrupt; 0: never
};

}  // namespace unisono::comm
