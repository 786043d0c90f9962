// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/agent_loan.hpp"

#include <algorithm>
#include <utility>

#include "plan/call.hpp"

namespace unisono::comm {

bool AgentLoan::lend_when(job::Agent::When when) {
  job::Agent* const agent = members_.job().agent();
  if (is_with_agent_ || queue_.active().empty() || agent == nullptr) return is_with_agent_;
  // A user's operator is called by the program's threads only.
  const auto calls_user = [](const Pending* pending) {
    return pending->operation.plan->op >= plan::kFirstUserNumber;
  };
  const bool is_for_waits = std::ranges::any_of(queue_.active(), calls_user);
  if (when == job::Agent::When::now && (is_for_waits || !agent->has_thread())) return false;
  is_with_agent_ = true;
  is_for_waits_ = is_for_waits;
  const bool is_carried = is_for_waits ? agent->wait_loans().lend(*this) : agent->lend(*this, when);
  if (!is_carried) end();
  return is_with_agent_;
}

void AgentLoan::end() {
  is_with_agent_ = false;
  if (!std::exchange(agent_awaits_credit_, false)) return;
  segment_.header().credit_sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

// The thread that carries takes nothing back.
void AgentLoan::take_back_now() {
  if (is_in_turn()) return;
  job::Agent& agent = *members_.job().agent();
  if (is_for_waits_) {
    agent.wait_loans().take_back(*this);
  } else {
    agent.take_back(*this);
  }
  end();
}

bool AgentLoan::try_to_take_back_now() {
  if (is_for_waits_ && !is_in_turn()) {
    if (!members_.job().agent()->wait_loans().try_to_take_back(*this)) return false;
    end();
    return true;
  }
  take_back_now();
  return true;
}

bool AgentLoan::carry_on() {
  if (queue_.active().empty()) return false;
  const auto advance = [this] {
    queue_.advance([this](const Pending& pending, engine::Outcome outcome) {
      return calls_.fail(pending, outcome);
    });
  };
  advance();
  // The agent may go to sleep after this, until another member completes something.
  if (queue_.credit_blocked() && !agent_awaits_credit_) {
    agent_awaits_credit_ = true;
    segment_.header().credit_sleepers.fetch_add(1, std::memory_order_seq_cst);
    advance();
  }
  watchdog_.examine_now_and_then();
  return !queue_.active().empty();
}

}  // namespace unisono::comm
