// SPDX-License-Identifier: BSD-3-Clause
// AgentLoan: a communicator's operations while the agent, or a thread that waits elsewhere, may
// carry them. Two threads never touch them at the same time: the application's thread takes them
// back before it does anything with them.
#pragma once

#include "comm/members.hpp"
#include "comm/operations/operation_queue.hpp"
#include "comm/segment.hpp"
#include "comm/watch/call_check.hpp"
#include "comm/watch/watchdog.hpp"
#include "job/agent.hpp"

namespace unisono::comm {

class AgentLoan final : public job::Carried {
 public:
  // These outlive it.
  AgentLoan(const Members& members, const Segment& segment, OperationQueue& queue, CallCheck& calls,
            Watchdog& watchdog)
      : members_(members), segment_(segment), queue_(queue), calls_(calls), watchdog_(watchdog) {}

  // With an agent, it continues the started operations while this thread does something else. It
  // begins at once, or if this thread does not come back within a moment.
  void lend(bool at_once) {
    lend_when(at_once ? job::Agent::When::at_once : job::Agent::When::later);
  }
  // The same; false if the agent does not carry it.
  bool lend_when(job::Agent::When when);
  void take_back() {
    if (is_with_agent_) [[unlikely]]
      take_back_now();
  }
  // For a look, which does not wait: false if another thread just carries them.
  bool try_to_take_back() { return !is_with_agent_ || try_to_take_back_now(); }

 private:
  bool carry_on() override;
  void take_back_now();
  bool try_to_take_back_now();
  void end();

  const Members& members_;
  const Segment& segment_;
  OperationQueue& queue_;
  CallCheck& calls_;
  Watchdog& watchdog_;
  // Written while nobody else carries.
  bool is_with_agent_ = false;
  bool is_for_waits_ = false;  // lent to threads that wait, not to the agent's
  bool agent_awaits_credit_ = false;
};

}  // namespace unisono::comm
