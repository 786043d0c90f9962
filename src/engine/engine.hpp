// SPDX-License-Identifier: BSD-3-Clause
// Engine: executes the operations of a communicator. There are three. Inline: the calling rank
// executes its own program. Helping: any awake rank of the host executes ready steps. NIC path: the
// program in the network interface. Blocking, split-phase and persistent calls use them alike:
// start() once, then step() until it returns finished. An engine never waits. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/operation.hpp"
#include "plan/operator_failure.hpp"

namespace unisono::engine {

// The reason why an operation does not go on, for messages.
struct Stall {
  int late = -1;                // a member that is still in operations before it; -1: none is known
  std::vector<int> not_called;  // members of this host that have not called it
};

// Until when a rank may sleep for an operation, and beside its doorbell on which descriptor.
struct SleepTarget {
  std::int64_t limit_ns = 0;
  int descriptor = -1;  // -1: none
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Takes the operation's place in the communicator's order. The operation, the plan and the
  // buffers stay where they are until it is finished, or cancelled.
  virtual void start(Operation& operation, const plan::Plan& plan, const Launch& launch) = 0;
  // Goes as far as it can without waiting. Outcome::failed: error() has the reason.
  virtual Outcome step(Operation& operation) = 0;
  virtual base::Error error(const Operation& operation) const;
  // The operation has failed: nothing more happens in it.
  virtual void cancel(Operation& operation) { static_cast<void>(operation); }

  // The member whose message or progress it waits for; -1: none, or more than one.
  virtual int awaited(const Operation& operation) const = 0;
  // Whether a member has done its part, so that its end does not matter to the operation.
  virtual bool completed_by(const Operation& operation, int rank) const = 0;
  virtual Stall describe_stall(const Operation& operation) const = 0;

  // Whether a rank that waits for it should sleep at once, because another program has its core.
  virtual bool sleeps_at_once(std::int64_t now_ns) const;
  // Before a sleep of at most `limit_ns`, and after it.
  virtual SleepTarget prepare_sleep(Operation& operation, std::int64_t limit_ns);
  virtual void after_sleep(Operation& operation, bool was_woken);
};

// The two engines of this host's processes. `machine` and the queues outlive them.
struct HostParts {
  const Machine& machine;
  SizeQueues& size_queues;
};

class HostEngine : public Engine {
 public:
  explicit HostEngine(const HostParts& parts) : parts_(parts) {}

  [[gnu::always_inline]] void start(Operation& operation, const plan::Plan& plan,
                                    const Launch& launch) final {
    operation.host.start(plan, size_queue_of(parts_.size_queues, plan.size), launch);
  }
  int awaited(const Operation& operation) const final;
  bool completed_by(const Operation& operation, int rank) const final;
  Stall describe_stall(const Operation& operation) const final;

 protected:
  const HostParts parts_;
};

class InlineEngine final : public HostEngine {
 public:
  using HostEngine::HostEngine;
  Outcome step(Operation& operation) override {
    try {
      return operation.host.step<false>(parts_.machine);
    } catch (const plan::OperatorFailure& failure) {
      return note(failure);
    } catch (...) {  // no memory: the caller hears of it, and may free the buffers
      cancel(operation);
      throw;
    }
  }
  void cancel(Operation& operation) override { operation.host.give_up(parts_.machine); }
  SleepTarget prepare_sleep(Operation& operation, std::int64_t limit_ns) override {
    operation.host.begin_later_segments<false>(parts_.machine);
    return Engine::prepare_sleep(operation, limit_ns);
  }
  // The step of an operation that has just been started.
  [[gnu::always_inline]] Outcome first_step(Operation& operation) {
    try {
      return operation.host.first_step(parts_.machine);
    } catch (const plan::OperatorFailure& failure) {
      return note(failure);
    } catch (...) {
      cancel(operation);
      throw;
    }
  }
  base::Error error(const Operation& operation) const override;

 private:
  Outcome note(const plan::OperatorFailure& failure);

  std::string operator_failure_;  // of the last operation whose operator has failed
};

class HelpingEngine final : public HostEngine {
 public:
  using HostEngine::HostEngine;
  Outcome step(Operation& operation) override;
  SleepTarget prepare_sleep(Operation& operation, std::int64_t limit_ns) override;
};

}  // namespace unisono::engine
