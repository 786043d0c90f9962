// SPDX-License-Identifier: BSD-3-Clause
#include "comm/communicator_wait.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "job/rank_sleep.hpp"

namespace unisono::comm {
namespace {

// A rank can wait for one descriptor beside its own, and in one job. At others it looks so often.
constexpr std::int64_t kManyDescriptorsNs = base::kMillisecond;
// Between two calls for the caller's own communication, before a sleep.
constexpr int kPauses = 32;
// How long it sleeps at most while it progresses other communicators as well.
constexpr std::int64_t kCarriedNs = 10 * base::kMillisecond;

// From here on the operations are seen to wait.
void note_waits(const OperationQueue& queue, std::int64_t now_ns) {
  for (Pending* const pending : queue.active()) {
    if (pending->started_ns == 0) pending->started_ns = now_ns;
  }
}

}  // namespace

void CommunicatorWait::find_other_jobs() {
  for (Communicator* c : communicators_) {
    if (&c->job_ != &job_ && std::ranges::count(other_jobs_, &c->job_) == 0) {
      other_jobs_.push_back(&c->job_);
    }
  }
}

bool CommunicatorWait::sleeps_at_once() const {
  return std::ranges::any_of(communicators_, [](const Communicator* c) {
    return c->nic_ != nullptr && c->nic_->sleeps_at_once(base::now_ns());
  });
}

// How long the operations let this rank sleep, and the events that wake it.
engine::SleepTarget CommunicatorWait::prepare_operations() {
  engine::SleepTarget all{.limit_ns = job_.watch().interval_ns()};
  for (Communicator* c : communicators_) {
    for (Pending* pending : c->queue_.active()) {
      engine::Operation& operation = pending->operation;
      const engine::SleepTarget own = operation.engine->prepare_sleep(operation, all.limit_ns);
      const bool is_second = own.descriptor >= 0 && all.descriptor >= 0;
      all.limit_ns = is_second ? std::min(own.limit_ns, kManyDescriptorsNs) : own.limit_ns;
      if (!is_second && own.descriptor >= 0) all.descriptor = own.descriptor;
    }
  }
  if (!other_jobs_.empty()) all.limit_ns = std::min(all.limit_ns, kManyDescriptorsNs);
  return all;
}

// Where ranks share a core, calls take long if the function itself yields. So they tell nothing
// there.
bool CommunicatorWait::carry_on() {
  const bool tells = !job_.cores().are_oversubscribed();
  bool in_a_row = false;
  for_each_job([&](job::Job& job) {
    if (!job.carry_on) return;
    const std::int64_t start = tells ? base::now_ns() : 0;
    job.carry_on();
    if (tells) in_a_row |= carry_on_pace_.add(base::now_ns() - start, job.carry_on.idle_ns);
  });
  return in_a_row;
}

// A rank that got an answer by the first of these calls may send the next message at once.
bool CommunicatorWait::stays_awake() {
  carry_on();  // after the last sleep, which leaves the caches cold
  if (job_.cores().are_oversubscribed()) return false;
  carry_on_pace_.begin();
  for (std::size_t call = 0; call < wait::CarryOnPace::kCalls; ++call) {
    if (job_.cores().contention().is_there(base::now_ns())) return false;
    for (Communicator* c : communicators_) {
      if (c->advance()) return true;
    }
    for (int i = 0; i < kPauses; ++i) wait::spin_pause();
    if (carry_on()) return true;
  }
  return false;
}

void CommunicatorWait::limit_sleep_by_carry_on(engine::SleepTarget& target) {
  target.limit_ns = stays_awake() ? 0 : std::min(target.limit_ns, carry_on_pace_.next_sleep_ns());
}

// True if woken, or if there was no need to sleep after all, so that more may come soon. A rank
// whose operation is in the NIC path sleeps on: its engine decides when to check.
bool CommunicatorWait::sleep() {
  engine::SleepTarget target = prepare_operations();
  bool has_carry_on = false;
  for_each_job([&](const job::Job& job) { has_carry_on |= static_cast<bool>(job.carry_on); });
  if (has_carry_on) limit_sleep_by_carry_on(target);
  const bool woken = target.limit_ns <= 0 || sleep_once(target);
  bool is_in_nic = false;
  for (Communicator* c : communicators_) {
    for (Pending* pending : c->queue_.active()) {
      engine::Operation& operation = pending->operation;
      operation.engine->after_sleep(operation, woken);
      is_in_nic |= operation.plan->engine == select::EngineKind::nic;
    }
    if (c->nic_ != nullptr) {
      c->nic_->publish();
      c->nic_->examine();
    }
    c->watchdog_.examine_after_sleep();
  }
  ask_for_interrupt(woken);
  return woken && !is_in_nic;
}

bool CommunicatorWait::sleep_once(engine::SleepTarget target) {
  const auto is_credit_blocked = [](const Communicator* c) { return c->queue_.credit_blocked(); };
  const bool credit = std::ranges::any_of(communicators_, is_credit_blocked);
  if (credit) change_credit_sleepers(true);
  bool woken = false;
  {
    job::RankSleep sleep(job_);
    for (Communicator* c : communicators_) {
      woken |= c->advance();
      woken |= c->watchdog_.has_new_event();
      // It went on to where it waits for credit, which was not announced.
      woken |= c->queue_.credit_blocked() && !credit;
    }
    // Messages for these wake the rank. Results in the NIC path and lost packets do not.
    if (carry_others()) target.limit_ns = std::min(target.limit_ns, kCarriedNs);
    if (!woken) {
      const std::int64_t now = base::now_ns();
      for (const Communicator* c : communicators_) note_waits(c->queue_, now);
      ++communicators_.front()->statistics_.sleeps;
      woken = sleep.sleep(target.limit_ns, target.descriptor);
    }
  }
  if (credit) change_credit_sleepers(false);
  const std::int64_t now = base::now_ns();
  for_each_job([now](job::Job& job) { job.watch().look(now); });
  return woken;
}

// A sleep that nobody ended may have been ended by a signal. One that came before the sleep is
// noticed at its time limit, or, where others keep waking this rank, by the clock.
void CommunicatorWait::ask_for_interrupt(bool woken) {
  const auto has_one = [](const Communicator* c) { return c->failures_.has_interrupt(); };
  if (std::ranges::none_of(communicators_, has_one)) return;
  const std::int64_t now = base::now_ns();
  if (asked_ns_ == 0) asked_ns_ = now;
  if (woken && now - asked_ns_ < job_.watch().interval_ns()) return;
  asked_ns_ = now;
  if (!ends_operations_) {
    answer_ = communicators_.front()->failures_.ask_application();
    return;
  }
  for (Communicator* c : communicators_) {
    if (c->failures_.ask_for_interrupt()) c->watchdog_.fail_late();
  }
}

void CommunicatorWait::change_credit_sleepers(bool are_asleep) {
  for (Communicator* c : communicators_) {
    auto& sleepers = c->segment_.header().credit_sleepers;
    if (are_asleep) {
      sleepers.fetch_add(1, std::memory_order_seq_cst);
    } else {
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
    }
  }
}

}  // namespace unisono::comm
