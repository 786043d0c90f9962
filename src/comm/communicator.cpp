// SPDX-License-Identifier: BSD-3-Clause
#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "arith/type.hpp"
#include "base/clock.hpp"
#include "comm/agreement/successor.hpp"
#include "comm/communicator_wait.hpp"
#include "comm/learning/learned_calls.hpp"
#include "comm/nic/nic_setup.hpp"
#include "comm/reservations.hpp"

namespace unisono::comm {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

std::int64_t lands_from(const Members& members) {
  if (members.on_one_host()) return 0;
  return static_cast<std::int64_t>(members.job().network()->capabilities().lands_from);
}

// Between hosts, no rank can execute another's steps, read another's memory or see staged data. All
// members must plan alike, however many cores their hosts have.
plan::PlanContext plan_context(const Members& members, const Segment& segment) {
  job::Job& job = members.job();
  const transport::Capabilities& can = job.transport().capabilities();
  const bool one_memory = members.on_one_host();
  std::vector<bool> group = members.multicast_group();
  const bool all_in_group = !group.empty() && std::ranges::count(group, false) == 0;
  return {.rank = members.rank(),
          .ranks = members.size(),
          .oversubscribed = one_memory && job.cores().are_oversubscribed(),
          .cores = one_memory ? job.cores().count() : 1,
          .shared_cores = one_memory ? 0 : job.cores().shared_by_hosts(),
          .staged_multicast = can.multicast,
          .multicast = one_memory ? can.multicast : all_in_group,
          .streams = segment.layout().streams,
          .shared_receive_buffers = one_memory && can.shared_receive_buffers,
          .engine = job.settings().engine(),
          .pull = one_memory && can.pull,
          .reproducible = job.reproducible,
          .heterogeneous = job.heterogeneous,
          .refer = one_memory && can.direct && can.shared_receive_buffers,
          .hosts = members.hosts(),
          .group = std::move(group),
          .land_from = lands_from(members),
          .single_copy_from = job.settings().bytes(base::Setting::single_copy_from),
          .check = job.settings().toggle(base::Setting::check),
          .receive_buffers = segment.layout().receive_buffers,
          .overrides = job.overrides(),
          .machine = &job.machine(),
          .learns = LearnedCalls::are_wanted(job.settings()) && members.size() > 1,
          .nic_multicasts = !one_memory && job.network()->multicasts(),
          .profile = job.profile.get(),
          .choices = one_memory ? segment.choices() : nullptr};
}

// The parts that prepare the start of a plan with extras.
struct Preparation {
  OperationQueue& queue;
  FailureState& failures;
  Watchdog& watchdog;
};

// A plan that is called again may reach buffers that are not yet real memory.
Status prepare_again(Segment& segment, FailureState& failures, const plan::Plan& plan) {
  const Status prepared = segment.prepare(plan);
  if (!prepared) return failures.refuse(prepared.error().code, prepared.error().message);
  return base::success();
}

Status prepare(const Preparation& parts, const plan::Plan& plan, profile::Form form,
               Pending& pending) {
  const auto& [queue, failures, watchdog] = parts;
  if (plan.multicasts) {
    // A sender that never waits looks here for the loss of a host.
    watchdog.examine_multicasts();
    if (failures.starts_no_more()) return failures.tell();
    pending.first_packet = queue.multicast_results().next_packet();
  }
  pending.form = form;
  pending.waits_from_ns = 0;
  if (plan.recording.row != nullptr) pending.begun_ns = base::now_ns();
  if (plan.staging_bytes == 0) return base::success();
  const Status staged = queue.stage(plan, pending);
  if (!staged) return failures.refuse(staged.error().code, staged.error().message);
  return base::success();
}

}  // namespace

Communicator::Made Communicator::create_world(job::Job& job) {
  std::vector<int> everyone(static_cast<std::size_t>(job.ranks().count()));
  std::iota(everyone.begin(), everyone.end(), 0);
  // The first rank of every host does the same, so all find the same offset.
  if (job.ranks().is_first_here()) {
    UNISONO_ASSIGN(const Grant grant, Segment::reserve(job, everyone));
    if (job.network() != nullptr) {
      UNISONO_TRY(job.memory().confine(job.hosts().own(), job.hosts().count()));
    }
    job.start_up().publish_world(grant.offset);
  }
  UNISONO_ASSIGN(const std::int64_t offset, job.start_up().await_world());
  std::unique_ptr<Communicator> world(
      new Communicator(job, std::move(everyone), job.ranks().own(),
                       {.offset = offset, .layout = Segment::layout_at(job, offset)}, true));
  UNISONO_TRY(world->join_nic());
  return world;
}

Communicator::Communicator(job::Job& job, std::vector<int> job_ranks, int rank, const Grant& grant,
                           bool is_world)
    : job_(job),
      members_(job, std::move(job_ranks), rank),
      segment_(members_, grant),
      size_queues_(segment_.size_queues()),
      is_world_(is_world),
      queue_(members_, segment_),
      failures_(members_, segment_, queue_),
      calls_(members_, segment_, queue_, failures_),
      ends_(segment_.at(grant.layout.ends), segment_.mark() + 1),
      watchdog_(members_, queue_, failures_, calls_, ends_),
      query_(members_, segment_),
      plans_(plan_context(members_, segment_)),
      loan_(members_, segment_, queue_, calls_, watchdog_) {
  learner_ = LearnedCalls(*this).make_learner();
}

// The last living member to end a communicator gives its memory back. With several hosts, the last
// one of each host does. The leader frees the segment for others when all leave records are there.
// A rank that leaves with the world reports that it leaves.
Communicator::~Communicator() {
  loan_.take_back();
  publish_progress();
  const bool has_failed = failures_.has_failed() || failures_.is_known();
  if (!is_world_) {
    std::vector<int> targets;
    if (job_.ranks().state(job_.ranks().own()) == job::RankState::present) {
      targets = members_.one_of_each_remote_host();
    }
    ends_.tell(
        rank(),
        {.index = queue_.next_index(), .has_failed = has_failed, .has_shrunk = shrink_ != nullptr},
        targets, job_.network());
  }
  if (shrink_ != nullptr) shrink_->give_back_unused();
  Reservations(members_, segment_).give_back_failed();
  StrandedBlocks& stranded = queue_.release_staging();
  const bool last_here = segment_.count_end(absent_, has_failed);
  if (!members_.on_one_host()) {
    // Before the first operation, no packet can be under way that would reach a newer communicator.
    segment_.leave(last_here, has_failed && queue_.next_index() != 0, !is_world_);
  } else if (last_here) {
    stranded.release_all();
    segment_.release();
  }
}

void Communicator::publish_progress() {
  loan_.take_back();
  failures_.end_lending();
  if (nic_ != nullptr) nic_->leave();
  watchdog_.forget_nic();
  queue_.forget_nic();
  nic_.reset();
  queue_.publish_progress();
}

Result<const plan::Plan*> Communicator::plan(const plan::Call& call) {
  loan_.take_back();
  UNISONO_ASSIGN(const plan::Plan* const plan, plans_.find(call, queue_.active().empty()));
  UNISONO_TRY(segment_.prepare(*plan));
  return plan;
}

Status Communicator::run(const plan::Call& call, const void* input, void* output) {
  loan_.take_back();
  if (failures_.starts_no_more()) [[unlikely]]
    return failures_.tell();
  auto found = plan(call);
  if (!found) [[unlikely]]
    return failures_.refuse(found.error().code, found.error().message);
  return run(**found, input, output);
}

Status Communicator::run(const plan::Plan& plan, const void* input, void* output) {
  loan_.take_back();
  if (failures_.starts_no_more()) [[unlikely]]
    return failures_.tell();
  if (!size_queue_of(size_queues_, plan.size).is_real(plan.segments)) [[unlikely]]
    UNISONO_TRY(prepare_again(segment_, failures_, plan));
  if (plan.has_extras) [[unlikely]] {
    if (plan.learned != nullptr) return run(*plan.learned, input, output);
    if (plan.learns && learner_->takes_calls()) return learner_->run(plan, input, output);
    UNISONO_TRY(prepare({queue_, failures_, watchdog_}, plan, profile::Form::blocking, blocking_));
  }
  queue_.start(plan, input, output, blocking_);
  plans_.use(plan);
  if (queue_.ends_at_once(blocking_)) [[likely]]
    return base::success();
  if (plan.recording.row != nullptr) blocking_.waits_from_ns = base::now_ns();
  queue_.add(blocking_);
  Pending* const awaited[] = {&blocking_};
  Communicator* const self[] = {this};
  wait_any(self, awaited);
  if (blocking_.state != Pending::State::complete) return failures_.tell();
  loan_.lend(true);
  return base::success();
}

Status Communicator::start(const plan::Plan& plan, const void* input, void* output,
                           Pending& pending) {
  loan_.take_back();
  if (failures_.starts_no_more()) [[unlikely]]
    return failures_.tell();
  queue_.make_room();
  if (!size_queue_of(size_queues_, plan.size).is_real(plan.segments))
    UNISONO_TRY(prepare_again(segment_, failures_, plan));
  if (plan.has_extras) {
    UNISONO_TRY(prepare({queue_, failures_, watchdog_}, plan, profile::Form::started, pending));
  }
  queue_.start(plan, input, output, pending);
  plans_.use(plan);
  queue_.add(pending);
  // The agent can send long messages as well.
  const bool is_long = !members_.on_one_host() && plan.segments > 1;
  if (is_long && loan_.lend_when(job::Agent::When::now)) return base::success();
  advance();
  loan_.lend(true);
  return base::success();
}

bool Communicator::progress() {
  loan_.take_back();
  return advance();
}

bool Communicator::advance() {
  return queue_.advance([this](const Pending& pending, engine::Outcome outcome) {
    return calls_.fail(pending, outcome);
  });
}

void Communicator::look() {
  progress();
  // A program may wait in a loop of looks.
  if (job::Agent* const agent = job_.agent(); agent != nullptr) agent->carry_in_wait();
  watchdog_.examine_now_and_then();
  failures_.adopt();
}

void Communicator::wait_any(std::span<Communicator* const> communicators,
                            std::span<Pending* const> awaited) {
  CommunicatorWait(communicators).until([&awaited] {
    return std::ranges::any_of(
        awaited, [](const Pending* p) { return p->state != Pending::State::running; });
  });
}

const CommunicatorStatistics& Communicator::statistics() {
  loan_.take_back();
  const OperationQueue::Counts& counts = queue_.counts();
  statistics_.buffer_bytes = segment_.buffer_bytes();
  statistics_.operations = counts.operations;
  statistics_.in_nic = counts.in_nic;
  statistics_.helped_steps = counts.helped_steps;
  statistics_.engine = counts.engine;
  statistics_.last_plan = plans_.last_used();
  return statistics_;
}

Status Communicator::exchange(plan::Purpose purpose, std::int32_t digest, const void* own,
                              void* all, std::int64_t bytes) {
  return run(plan::call_of_exchange(purpose, digest, bytes), own, all);
}

Status Communicator::join_nic() {
  const auto exchange = [this](const void* own, void* all, std::int64_t bytes) {
    return this->exchange(plan::Purpose::nic_path, 0, own, all, bytes);
  };
  UNISONO_ASSIGN(auto path, agree_on_nic(members_, segment_, is_world_, exchange));
  if (path == nullptr) return base::success();
  const nic::Preferences preferences = path->preferences;
  nic_ = std::make_unique<NicEngine>(members_, segment_, queue_, failures_, std::move(path));
  queue_.use_nic(*nic_);
  watchdog_.use_nic(*nic_);
  nic_->publish();
  plans_.use_nic(preferences);
  return base::success();
}

Query& Communicator::words() {
  loan_.take_back();
  return query_;
}

Result<bool> Communicator::query(Comparison how, std::uint64_t value) {
  loan_.take_back();
  UNISONO_TRY(query_.begin());
  Result<std::optional<bool>> answer = std::optional<bool>();
  Communicator* const self[] = {this};
  const std::optional<EarlyEnd> early = CommunicatorWait(self).alone([&] {
    answer = query_.step(how, value);
    return !answer || *answer;
  });
  loan_.lend(false);  // the started operations continue
  if (early) return query_.unanswered(*early);
  if (!answer) return answer.error();
  return **answer;
}

Status Communicator::begin_shrink() {
  loan_.take_back();
  if (shrink_ != nullptr && shrink_->is_over()) {
    return Error{Code::state, fmt::format("rank {}: this communicator has been shrunk already; "
                                          "shrink the one that came of it",
                                          rank())};
  }
  failures_.adopt();
  // Also those before a failed one, which the others may have started.
  if (!failures_.starts_no_more()) {
    failures_.fail_all(Code::cancelled, members_.name(rank()) + " called shrink",
                       queue_.next_index(), rank());
  }
  failures_.count_as_reported();
  if (shrink_ != nullptr) return base::success();  // a call that ended by a deadline
  shrink_ = std::make_unique<Shrink>(members_, segment_, ends_);
  return shrink_->join();
}

Result<std::optional<std::unique_ptr<Communicator>>> Communicator::step_shrink() {
  return Successor(*this).step(*shrink_);
}

Communicator::Made Communicator::shrink() {
  UNISONO_TRY(begin_shrink());
  Result<std::optional<std::unique_ptr<Communicator>>> made =
      std::optional<std::unique_ptr<Communicator>>();
  Communicator* const self[] = {this};
  const std::optional<EarlyEnd> early = CommunicatorWait(self).alone([&] {
    made = step_shrink();
    return !made || *made;
  });
  if (early) return shrink_->incomplete(*early);
  if (!made) return made.error();
  return std::move(**made);
}

}  // namespace unisono::comm
