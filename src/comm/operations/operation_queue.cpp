// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/operation_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "plan/call.hpp"

namespace unisono::comm {

using base::Status;

std::string describe_plan(const plan::Plan& plan) {
  return plan::describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root);
}

std::string describe(const engine::Operation& operation) {
  const bool in_nic = operation.plan->engine == select::EngineKind::nic;
  return fmt::format("{} (operation {}{})", describe_plan(*operation.plan), operation.index,
                     in_nic ? ", in the NIC path" : "");
}

OperationQueue::OperationQueue(const Members& members, Segment& segment)
    : members_(members),
      segment_(segment),
      machine_{.router = members.router(),
               .doorbells = &members.job().doorbells(),
               .job_ranks = members.job_ranks().data(),
               .ranks = members.size(),
               .job_memory = members.job().memory().at(0),
               .job_memory_bytes = static_cast<std::size_t>(members.job().memory().bytes()),
               .credit_sleepers = &segment.header().credit_sleepers,
               .counters = &counts_.engine,
               .failed_from = &segment.header().failure.end,
               .left_from = &segment.header().failure.left_end},
      inline_({machine_, segment.size_queues()}),
      helping_({machine_, segment.size_queues()}),
      engines_{&inline_, &helping_, nullptr},
      remote_calls_({.memory = members.job().memory().at(0),
                     .offset = segment.offset() + segment.layout().calls},
                    members.rank(), segment.mark()),
      multicast_results_(members),
      staging_(members.job().memory(),
               engine::size_queue_of(segment.size_queues(), plan::SizeClass::small),
               segment.header().first_stranded) {
  active_.reserve(1);
}

void OperationQueue::start_otherwise(engine::Operation& operation, const plan::Plan& plan,
                                     const engine::Launch& launch) {
  if (plan.engine == select::EngineKind::helping) {
    helping_.start(operation, plan, launch);
    note_call(operation.index);
    return;
  }
  // The NIC engine has no call record, and may send at once.
  note_call(operation.index);
  operation.engine->start(operation, plan, launch);
}

Status OperationQueue::stage(const plan::Plan& plan, Pending& pending) {
  UNISONO_ASSIGN(pending.staging, staging_.take(plan.staging_bytes, plan.staging_round));
  return base::success();
}

void OperationQueue::give_back_staging(Pending& pending) {
  const Staging::Block block = std::exchange(pending.staging, {});
  if (block.offset == 0) return;
  if (pending.state == Pending::State::failed) {
    staging_.abandon(block);
  } else if (pending.operation.plan->staging_lasts) {
    staging_.give_back_after(block, pending.operation.host.sequence());
  } else {
    staging_.give_back(block);
  }
}

void OperationQueue::finish_extras(Pending& pending) {
  give_back_staging(pending);
  if (pending.operation.plan->multicasts) {
    multicast_results_.note_sent(pending.operation.index, pending.first_packet);
  }
  const profile::Recording& recording = pending.operation.plan->recording;
  if (recording.row == nullptr) return;
  const std::int64_t now = base::now_ns();
  recording.row->of(pending.form)
      .add({.bytes = recording.bytes,
            .ns = now - pending.begun_ns,
            .waited_ns = pending.waits_from_ns == 0 ? -1 : now - pending.waits_from_ns,
            .predicted_ns = recording.predicted_ns});
}

Pending::~Pending() {
  if (queue != nullptr) queue->withdraw(*this);
}

OperationQueue::~OperationQueue() {
  for (Pending* const pending : active_) pending->queue = nullptr;
}

void OperationQueue::add(Pending& pending) {
  pending.queue = this;
  active_.push_back(&pending);
}

void OperationQueue::withdraw(Pending& pending) {
  pending.state = Pending::State::failed;
  pending.queue = nullptr;
  pending.operation.engine->cancel(pending.operation);
  give_back_staging(pending);
  std::erase(active_, &pending);
}

void OperationQueue::fail_from(std::uint64_t index) {
  std::erase_if(active_, [&](Pending* pending) {
    if (pending->operation.index < index) return false;
    pending->state = Pending::State::failed;
    pending->queue = nullptr;
    pending->operation.engine->cancel(pending->operation);
    give_back_staging(*pending);
    return true;
  });
}

void OperationQueue::forget_nic() {
  std::erase_if(active_, [](Pending* pending) {
    if (pending->operation.plan->engine != select::EngineKind::nic) return false;
    pending->state = Pending::State::failed;
    pending->queue = nullptr;
    return true;
  });
  nic_engine() = nullptr;
}

void OperationQueue::note_call(std::uint64_t index) {
  if (!machine_.router.leads_elsewhere()) return remote_calls_.note(index, history());
  // Another host may be reading the calls.
  const auto held = members_.job().network()->hold();
  remote_calls_.note(index, history());
}

// A rank that waits only for results of the NIC path leaves its datagrams to the network's thread.
// Each look at them is a system call, which would delay the result by microseconds.
void OperationQueue::carry_transports() {
  const bool all_in_nic = std::ranges::all_of(active_, [](const Pending* pending) {
    return pending->operation.plan->engine == select::EngineKind::nic;
  });
  if (all_in_nic && !active_.empty()) return;
  machine_.router.progress_here();
  if (machine_.router.leads_elsewhere()) members_.job().carry_network();
}

// A transport that repairs losses needs to know from whom to request packets.
void OperationQueue::tell_awaited(const engine::Operation& operation) {
  const int rank = operation.engine->awaited(operation);
  if (rank < 0 || rank == members_.rank()) return;
  machine_.router.awaits(members_.job_rank(rank), operation.host.awaits_multicast());
}

bool OperationQueue::credit_blocked() const {
  return std::ranges::any_of(active_, [](const Pending* pending) {
    const engine::Operation& operation = pending->operation;
    return operation.plan->engine != select::EngineKind::nic && !operation.host.entered();
  });
}

// Operations that have not ended get nothing any more, so their buffers are left alone.
void OperationQueue::publish_progress() {
  for (Pending* const pending : active_) {
    if (pending->operation.engine == &inline_) inline_.cancel(pending->operation);
  }
  for (engine::SizeQueue& size_queue : segment_.size_queues()) {
    engine::tell_progress(machine_, size_queue, size_queue.told().take_untold(size_queue.done()));
  }
}

}  // namespace unisono::comm
