// SPDX-License-Identifier: BSD-3-Clause
// OperationQueue: the operations of a communicator, in the order in which its ranks have called
// them. It numbers them, gives each to its plan's engine, and progresses those that have not ended.
// One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/members.hpp"
#include "comm/operations/multicast_results.hpp"
#include "comm/operations/remote_calls.hpp"
#include "comm/operations/staging.hpp"
#include "comm/segment.hpp"
#include "engine/engine.hpp"
#include "profile/profile.hpp"

namespace unisono::comm {

class OperationQueue;

// A started operation that its owner has not yet collected. If it is destroyed before the operation
// ends, it removes the operation from the queue.
struct Pending {
  Pending() = default;
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  enum class State : std::uint8_t { running, complete, failed };
  engine::Operation operation;
  State state = State::running;
  std::int64_t started_ns = 0;  // when it was first seen to wait; 0: never
  std::uint32_t looks = 0;      // number of thorough checks of what it waits for
  profile::Form form = profile::Form::blocking;
  // Only if the plan is recorded: when it was called, and when its rank found nothing to do (0:
  // never, or not known).
  std::int64_t begun_ns = 0, waits_from_ns = 0;
  Staging::Block staging;           // of the plan's staging_bytes
  std::uint64_t first_packet = 0;   // of its multicasts, if the plan has some
  OperationQueue* queue = nullptr;  // the queue that holds it; null: none
};

// "allreduce(count 8, float64, sum)".
std::string describe_plan(const plan::Plan& plan);
// The same with its number, and "in the NIC path" if it is there.
std::string describe(const engine::Operation& operation);

class OperationQueue {
 public:
  struct Counts {
    std::int64_t operations = 0;
    std::int64_t in_nic = 0;  // of these, by the NIC path
    std::int64_t helped_steps = 0;
    engine::Counters engine;
  };

  // These outlive it.
  OperationQueue(const Members& members, Segment& segment);
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // Plans for the NIC path go there from now on; it outlives the queue's use.
  void use_nic(engine::Engine& nic) { nic_engine() = &nic; }
  // Operations there fail.
  void forget_nic();

  // Before start(), for a plan with staging_bytes: reserves them. Error: no memory.
  base::Status stage(const plan::Plan& plan, Pending& pending);
  // Starts an operation. `pending` must not move until it has ended. In place, as all of a call
  // that has just this one thing to do.
  [[gnu::always_inline]] void start(const plan::Plan& plan, const void* input, void* output,
                                    Pending& pending) {
    pending.state = Pending::State::running;
    pending.started_ns = 0;
    pending.looks = 0;
    engine::Operation& operation = pending.operation;
    operation.plan = &plan;
    operation.index = next_index_++;
    operation.engine = engines_[static_cast<std::size_t>(plan.engine)];
    history_ = (history_ ^ plan.digest) * 0x9e3779b97f4a7c15U;
    const engine::Launch launch{.input = input,
                                .output = output,
                                .index = operation.index,
                                .history = history(),
                                .staging = pending.staging.offset == 0
                                               ? nullptr
                                               : machine_.job_memory + pending.staging.offset};
    // A rank that finds another digest than its own looks for the call's record, so that comes
    // first.
    if (plan.engine == select::EngineKind::inline_) [[likely]] {
      inline_.start(operation, plan, launch);
      if (machine_.router.leads_elsewhere()) [[unlikely]] {
        note_call(operation.index);
      } else {
        remote_calls_.note(operation.index, history());
      }
    } else {
      start_otherwise(operation, plan, launch);
    }
  }
  // One step of an operation that has just been started. True: it has ended, and is not in the
  // queue.
  [[gnu::always_inline]] bool ends_at_once(Pending& pending) {
    engine::Operation& operation = pending.operation;
    if (!active_.empty() || !machine_.router.stores_here()) [[unlikely]]
      return false;
    const bool is_inline = operation.engine == &inline_;
    const engine::Outcome outcome =
        is_inline ? inline_.first_step(operation) : operation.engine->step(operation);
    if (outcome != engine::Outcome::finished) return false;
    finish(pending);
    return true;
  }
  // Before start(): gets the memory for add(). An operation that has started is then carried on,
  // as other ranks may execute steps of it. There is always room for the blocking call beside.
  void make_room() {
    if (active_.size() + 2 > active_.capacity()) [[unlikely]]
      active_.reserve(2 * active_.size() + 2);
  }
  // From now on advance() carries it on.
  void add(Pending& pending);
  // Takes it out; the others go on.
  void withdraw(Pending& pending);

  // Carries all on. `stuck(pending, outcome)` is called for an operation that cannot go on, and
  // says whether to stop here. True if any has ended.
  template <class Stuck>
  bool advance(const Stuck& stuck);
  // Fails all from operation `index` on; those before can still end well.
  void fail_from(std::uint64_t index);

  const std::vector<Pending*>& active() const { return active_; }
  // The index of the operation that is called next.
  std::uint64_t next_index() const { return next_index_; }
  // A digest of all calls so far, as sent with each message; never 0.
  std::uint32_t history() const {
    // The high bits are the mixed ones.
    return static_cast<std::uint32_t>(history_ >> (64 - plan::kDigestBits)) | 1U;
  }
  RemoteCalls& remote_calls() { return remote_calls_; }
  MulticastResults& multicast_results() { return multicast_results_; }
  // Whether an operation waits for credit: until all ranks have progressed so far that it may use
  // its buffers.
  bool credit_blocked() const;
  const engine::Machine& machine() const { return machine_; }
  // Informs members on other hosts of this rank's progress, before it leaves.
  void publish_progress();
  // At the end of the communicator, while its memory is there: before this member has said that it
  // has ended. Returns the blocks that failed operations of all members have left. The last member
  // then releases them; between hosts no member knows that it is the last, so they stay.
  StrandedBlocks& release_staging() {
    staging_.release_spare();
    return staging_.stranded();
  }

  const Counts& counts() const { return counts_; }

 private:
  engine::Engine*& nic_engine() {
    return engines_[static_cast<std::size_t>(select::EngineKind::nic)];
  }
  void give_back_staging(Pending& pending);
  void finish_extras(Pending& pending);
  void start_otherwise(engine::Operation& operation, const plan::Plan& plan,
                       const engine::Launch& launch);
  void note_call(std::uint64_t index);
  void finish(Pending& pending) {
    pending.state = Pending::State::complete;
    ++counts_.operations;
    if (pending.operation.plan->engine == select::EngineKind::nic) [[unlikely]] {
      ++counts_.in_nic;
    } else {
      counts_.helped_steps += pending.operation.host.helped_steps();
    }
    if (pending.operation.plan->has_extras) [[unlikely]]
      finish_extras(pending);
  }
  void tell_awaited(const engine::Operation& operation);
  void carry_transports();

  const Members& members_;
  Segment& segment_;
  Counts counts_;
  engine::Machine machine_;
  engine::InlineEngine inline_;
  engine::HelpingEngine helping_;
  std::array<engine::Engine*, select::kEngineCount> engines_;
  std::vector<Pending*> active_;
  std::uint64_t next_index_ = 0;
  std::uint64_t history_ = 1;  // of all calls so far
  RemoteCalls remote_calls_;
  MulticastResults multicast_results_;
  Staging staging_;
};

template <class Stuck>
bool OperationQueue::advance(const Stuck& stuck) {
  carry_transports();
  bool any = false;
  for (std::size_t i = 0; i < active_.size();) {
    Pending& pending = *active_[i];
    const engine::Outcome outcome = pending.operation.engine->step(pending.operation);
    if (outcome == engine::Outcome::finished) {
      finish(pending);
      pending.queue = nullptr;
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      any = true;
      continue;
    }
    if (outcome != engine::Outcome::blocked) {
      if (stuck(pending, outcome)) return true;
    } else if (!machine_.router.only_stores()) {
      tell_awaited(pending.operation);
    }
    ++i;
  }
  return any;
}

}  // namespace unisono::comm
