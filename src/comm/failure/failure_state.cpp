// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/failure_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/clock.hpp"

namespace unisono::comm {

using base::Code;
using base::Error;

FailureState::FailureState(const Members& members, const Segment& segment, OperationQueue& queue)
    : members_(members),
      record_(segment.header().failure),
      queue_(queue),
      updates_(members, segment.failure_place()) {}

void FailureState::fail_all(Code code, const std::string& message, std::uint64_t index, int rank) {
  const job::Failure failure{index, {code, message}, index, rank};
  const bool is_new = job::report_failure(record_, failure);
  if (is_new) members_.job().events().raise();
  if (is_new && !members_.on_one_host()) updates_.pass_on(failure);
  // The record may hold another rank's failure of a later operation. A leaf of a reduce has gone on
  // long before its root finds that a member is lost.
  const auto told = job::read_failure(record_);
  const job::Failure& known = told && told->cause <= index ? *told : failure;
  if (failure_ && known.index >= failure_->index) return;
  if (!is_new && !members_.on_one_host()) updates_.pass_on(known);
  fail_pending(known);
}

Error FailureState::refuse(Code code, const std::string& what, Ending ending) {
  const std::uint64_t index = ending == Ending::all ? 0 : queue_.next_index();
  // If another rank's failure of the same call was seen first, it is reported like this one's.
  if (!failure_ || index <= failure_->index) {
    const bool is_invalid = code == Code::argument || code == Code::type || code == Code::state;
    fail_all(is_invalid ? Code::peer_argument : code,
             fmt::format("{} {}: {}", is_invalid ? "invalid call on" : "a call failed on",
                         members_.name(members_.rank()), what),
             index, members_.rank());
    if (failure_) failure_->error = {code, what};  // returned by later calls of this rank
    failure_reported_ = true;
  }
  return {code, fmt::format("rank {}: {}", members_.rank(), what)};
}

void FailureState::adopt() {
  const auto failure = updates_.earliest();
  if (!failure || (failure_ && failure->index >= failure_->index)) return;
  if (!members_.on_one_host()) updates_.pass_on(*failure);
  fail_pending(*failure);
}

void FailureState::fail_pending(const job::Failure& failure) {
  failure_ = failure;
  ++count_;
  queue_.fail_from(failure.index);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before the memory is used again
}

bool FailureState::ask_for_interrupt() {
  if (!has_interrupt() || queue_.active().empty()) return false;
  const int answer = ask_application();
  if (answer == 0 || answer == Interrupt::kLate) return answer == Interrupt::kLate;
  const std::uint64_t index = queue_.active().front()->operation.index;
  fail_all(Code::cancelled,
           fmt::format("{} was interrupted in a wait and cancelled operation {}",
                       members_.name(members_.rank()), index),
           index, members_.rank());
  return false;
}

void FailureState::fail_without(int rank, const std::string& what, std::uint64_t index) {
  fail_all(Code::rank_lost,
           fmt::format("{} is lost to this communicator (it has ended it, as by "
                       "unisono_comm_free): {} cannot complete",
                       members_.locate(rank), what),
           index, rank);
}

void FailureState::end_lending() {
  const auto own = static_cast<std::size_t>(members_.rank());
  const auto lends = [own](const Pending* pending) {
    const plan::Plan& plan = *pending->operation.plan;
    if (plan.engine == select::EngineKind::nic) return false;
    const plan::Plan::Part* part = plan.parts.get();
    while (!part->programs[own].callers_memory_is_read && part->end != plan.segments) ++part;
    return part->programs[own].callers_memory_is_read;
  };
  const auto first = std::ranges::find_if(queue_.active(), lends);
  if (first == queue_.active().end()) return;
  job::report_left(record_, (*first)->operation.index);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before the memory is used again
}

Error FailureState::tell() {
  failure_reported_ = true;
  return {failure_->error.code,
          fmt::format("rank {}: {}", members_.rank(), failure_->error.message)};
}

bool FailureState::is_being_reported() const {
  const auto lives = [this](int job_rank) {
    const job::RankState state = members_.job().ranks().state(job_rank);
    return state == job::RankState::present || state == job::RankState::left;
  };
  return job::is_being_reported(record_) && std::ranges::all_of(members_.job_ranks(), lives);
}

bool FailureState::may_have_known(int rank) {
  if (!members_.is_remote(rank) || members_.state(rank) != job::RankState::left) return false;
  const std::int64_t now = base::now_ns();
  if (left_since_ns_ == 0) left_since_ns_ = now;
  return now - left_since_ns_ < job::SilenceLimits::of(members_.job().settings()).suspect_ns;
}

}  // namespace unisono::comm
