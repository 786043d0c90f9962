// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that finds out why an operation does not go on: another rank reported a
// failure, a member is gone, the ranks called different things, or a deadline passed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "base/clock.hpp"
#include "group/communicator.hpp"

namespace unisono::group {

// A call record as it was at one moment.
struct RecordCopy {
  std::uint64_t sequence, index;
  std::int64_t count;
  std::uint32_t digest;
  std::int32_t root, type, op, collective;

  std::string describe() const { return describe_call(collective, count, type, op, root); }
};

namespace {

using base::Code;
using base::Error;
using engine::CallRecord;

constexpr std::int64_t kThoroughlyEveryNs = 10 * base::kMillisecond;
// Of the looks at an operation, at least one of so many asks another host.
constexpr std::uint32_t kLooksAtMost = 64;

// nullopt while its owner writes.
std::optional<RecordCopy> read_record(const CallRecord& record) {
  constexpr auto acquire = std::memory_order_acquire;
  const std::uint64_t before = record.sequence.load(acquire);
  const RecordCopy copy{before,
                        record.index.load(acquire),
                        record.count.load(acquire),
                        record.digest.load(acquire),
                        record.root.load(acquire),
                        record.type.load(acquire),
                        record.op.load(acquire),
                        record.collective.load(acquire)};
  if (before == 0 || record.sequence.load(acquire) != before) return std::nullopt;
  return copy;
}

// The records of a rank that are still there, of both lanes.
std::vector<RecordCopy> read_records(const engine::Lane& small, const engine::Lane& bulk,
                                     int rank) {
  std::vector<RecordCopy> records;
  for (const engine::Lane* lane : {&small, &bulk}) {
    for (int c = 0; c < lane->geometry().channels; ++c) {
      const auto copy = read_record(lane->record(static_cast<std::uint64_t>(c), rank));
      if (copy) records.push_back(*copy);
    }
  }
  return records;
}

std::string difference_text(std::uint64_t index, const std::string& calls) {
  return fmt::format(
      "the ranks' calls differ at operation {} of the communicator: {}; all ranks have to make the "
      "same calls in the same order",
      index, calls);
}

}  // namespace

const char* how_it_went(RankState state) {
  switch (state) {
    case RankState::dead:
      return "its process ended without finalize";
    case RankState::silent:
      return "it does not answer: its process or its host has ended, hangs or is cut off";
    case RankState::left:
      return "it finalized, or left, before its part was done";
    case RankState::absent:
    case RankState::present:
      break;
  }
  return "it is not there";
}

struct Communicator::Difference {
  int other;
  RecordCopy own, theirs;
};

base::Error Communicator::failure() {
  take_back();
  told_ = true;
  return {failure_->error.code, fmt::format("rank {}: {}", rank_, failure_->error.message)};
}

std::string Communicator::name_rank(int rank) const {
  const int job_rank = job_ranks_[static_cast<std::size_t>(rank)];
  if (job_rank == rank) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (rank {} of the job)", rank, job_rank);
}

std::string Communicator::locate_rank(int rank) const {
  const int job_rank = job_ranks_[static_cast<std::size_t>(rank)];
  const std::string place = job_.hosts().place_of(job_rank);
  if (place.empty()) return name_rank(rank);
  if (job_rank == rank) return fmt::format("rank {} ({})", rank, place);
  return fmt::format("rank {} (rank {} of the job, {})", rank, job_rank, place);
}

std::string Communicator::describe_loss(int rank) const {
  const int job_rank = job_ranks_[static_cast<std::size_t>(rank)];
  return fmt::format("{} is lost ({})", name_rank(rank),
                     job_.hosts().with_place(job_rank, how_it_went(state_of(rank))));
}

void Communicator::fail_all(Code code, const std::string& message, std::uint64_t index) {
  take_back();
  const Failure failure{index, {code, message}};
  const bool is_news = report_failure(header_->failure, failure);
  if (is_news) job_.raise_alarm();
  if (is_news && !remote_.empty()) news_.pass_on(failure);
  // What stands in the record may be another rank's, from further ahead: a leaf of a reduce has
  // gone on long before its root finds that a member is lost.
  const auto told = read_failure(header_->failure);
  const Failure& known = told && told->cause <= index ? *told : failure;
  if (failure_ && known.index >= failure_->index) return;
  if (!is_news && !remote_.empty()) news_.pass_on(known);
  fail_pending(known);
}

base::Error Communicator::refuse(Code code, const std::string& what) {
  take_back();
  // Another rank's failure of the same call, seen first, is no more news than this one's.
  if (!failure_ || next_index_ <= failure_->index) {
    const bool is_invalid = code == Code::argument || code == Code::type || code == Code::state;
    fail_all(is_invalid ? Code::peer_argument : code,
             fmt::format("{} {}: {}", is_invalid ? "invalid call on" : "a call failed on",
                         name_rank(rank_), what),
             next_index_);
    if (failure_) failure_->error = {code, what};  // what later calls of this rank get
    told_ = true;
  }
  return {code, fmt::format("rank {}: {}", rank_, what)};
}

void Communicator::look_for_failure() {
  take_back();
  adopt_failure();
}

// Called in every turn of a wait; costs two loads while nothing is wrong.
void Communicator::examine(bool waited_long) {
  // News from another host may have overtaken what it is about.
  const bool looks_anew = waited_long && !remote_.empty();
  if (job_.alarm() != alarm_seen_ || looks_anew) [[unlikely]] {
    alarm_seen_ = job_.alarm();
    // In this order, for a rank of this host that leaves because of a failure has shown it before.
    for (const int member : job_ranks_) {
      someone_gone_ |= job_.state(member) != RankState::present;
    }
    adopt_failure();
    if (someone_gone_) news_.pass_on_again();
  }
  if (someone_gone_) [[unlikely]]
    examine_members();
  if (!waited_long || active_.empty()) return;
  if (!remote_.empty()) ask_for_failure();
  examine_calls();
  examine_silence();
  if (examine_ends()) return;
  examine_stops();
  examine_deadline();
}

// A rank that is woken in every operation has no time for a thorough look in each.
void Communicator::examine_after_sleep() {
  const std::int64_t now = base::now_ns();
  const bool due = now - examined_ns_ > kThoroughlyEveryNs;
  if (due) examined_ns_ = now;
  examine(due);
}

// By who does not sleep on its own account: a rank that polls, and an agent.
void Communicator::examine_now_and_then() {
  const std::int64_t now = base::now_ns();
  const bool due = now - examined_ns_ > job_.watch_interval_ns();
  if (due) {
    examined_ns_ = now;
    job_.watch(now);
  }
  examine(due);
}

void Communicator::adopt_failure() {
  const auto failure = known_failure();
  if (!failure || (failure_ && failure->index >= failure_->index)) return;
  if (!remote_.empty()) news_.pass_on(*failure);
  fail_pending(*failure);
}

// Operations before the failed one can still end well.
void Communicator::fail_pending(const Failure& failure) {
  failure_ = failure;
  searched_ = 0;
  std::erase_if(active_, [&](Pending* pending) {
    if (pending->operation.index() < failure.index) return false;
    pending->state = Pending::State::failed;
    give_back_staging(*pending);
    return true;
  });
}

// Whoever left may have done so because of a failure that another rank is about to tell.
bool Communicator::is_being_told() const {
  const auto lives = [this](int job_rank) {
    const RankState state = job_.state(job_rank);
    return state == RankState::present || state == RankState::left;
  };
  return is_being_reported(header_->failure) && std::ranges::all_of(job_ranks_, lives);
}

// A rank of another host that left before its part was done has mostly heard of a failure, of which
// the news are still on their way to this one.
bool Communicator::may_have_known(int rank) {
  if (!is_remote(rank) || state_of(rank) != RankState::left) return false;
  const std::int64_t now = base::now_ns();
  if (left_since_ns_ == 0) left_since_ns_ = now;
  return now - left_since_ns_ < SilenceLimits::of(job_.settings()).suspect_ns;
}

// Of each rank that this one waits for, whether it knows of a failure that ends the wait: the news
// may have been with a rank that died.
void Communicator::ask_for_failure() {
  for (const Pending* pending : active_) {
    const engine::Operation& operation = pending->operation;
    const int rank =
        operation.entered() ? operation.awaited() : operation.lane().laggard(operation.sequence());
    if (rank >= 0 && rank != rank_ && is_remote(rank)) return news_.ask_now_and_then(rank);
  }
}

// One that left may have done so because of another's death, of which nobody has told yet.
int Communicator::cause_of_loss(int rank) const {
  if (state_of(rank) != RankState::left) return rank;
  for (int r = 0; r < size(); ++r) {
    const RankState state = state_of(r);
    if (state != RankState::present && state != RankState::left) return r;
  }
  return rank;
}

// A member that is gone matters to an operation only if it had not completed its part of it.
void Communicator::examine_members() {
  for (const Pending* pending : std::vector<Pending*>(active_)) {
    for (int r = 0; r < size(); ++r) {
      const RankState state = state_of(r);
      if (state == RankState::present) continue;
      // From another host, what it sent may have been under way when it ended.
      const bool lacks =
          is_remote(r) && state != RankState::left && pending->operation.awaited() == r;
      const bool completed =
          pending->operation.lane().completed_by(r, pending->operation.sequence());
      if (completed && !lacks) continue;
      if (lacks) {  // it may have come since, before the news of the end
        progress();
        const bool pends = std::ranges::find(active_, pending) != active_.end();
        if (!pends || pending->operation.awaited() != r) return;
      }
      // It may have told of a failure and left since this rank looked for one.
      const std::uint64_t index = pending->operation.index();
      adopt_failure();
      if (has_failed_by(index) || is_being_told() || may_have_known(r)) return;
      const engine::Plan& plan = pending->operation.plan();
      fail_all(
          Code::rank_lost,
          fmt::format("{}: {} (operation {}) cannot complete", describe_loss(cause_of_loss(r)),
                      describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                      index),
          index);
      return;
    }
  }
}

// A member that has ended the communicator, though it lives, does nothing more in it. True if an
// operation fails because of that.
bool Communicator::examine_ends() {
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || state_of(r) != RankState::present) continue;
    const auto end = ends_.of(r);
    if (!end || end->has_failed) continue;  // the failure is told
    const auto lacking = std::ranges::find_if(active_, [&](const Pending* pending) {
      const engine::Operation& operation = pending->operation;
      // Of another host, it may be known later what it has completed.
      return operation.index() >= end->index ||
             (!is_remote(r) && !operation.lane().completed_by(r, operation.sequence()));
    });
    if (lacking == active_.end()) continue;
    const engine::Operation& operation = (*lacking)->operation;
    const engine::Plan& plan = operation.plan();
    fail_without(
        r,
        fmt::format("{} (operation {})",
                    describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                    operation.index()),
        operation.index());
    return true;
  }
  return false;
}

void Communicator::fail_without(int rank, const std::string& what, std::uint64_t index) {
  fail_all(Code::rank_lost,
           fmt::format("{} is lost to this communicator (it has ended it, as by "
                       "unisono_comm_free): {} cannot complete",
                       locate_rank(rank), what),
           index);
}

// One that is stopped for good becomes lost, of which the alarm tells.
void Communicator::examine_stops() {
  const auto waits_for = [this](int rank) {
    return std::ranges::any_of(active_, [rank](const Pending* pending) {
      const engine::Operation& operation = pending->operation;
      return !operation.lane().completed_by(rank, operation.sequence());
    });
  };
  for (int r = 0; r < size(); ++r) {
    if (is_remote(r) || r == rank_ || !waits_for(r)) continue;
    job_.is_stopped(job_ranks_[static_cast<std::size_t>(r)]);
  }
}

void Communicator::examine_calls() {
  if (const auto difference = find_difference()) return tell_difference(*difference);
  if (!remote_.empty()) examine_remote_calls();
}

// The records of other hosts' ranks are there. A rank may come late, so one is asked again and
// again, but ever more rarely.
void Communicator::examine_remote_calls() {
  if (searched_ != 0) return;
  for (Pending* const pending : active_) {
    const engine::Operation& operation = pending->operation;
    const int other =
        operation.entered() ? operation.awaited() : operation.lane().laggard(operation.sequence());
    if (other < 0 || !is_remote(other)) continue;
    const bool is_asked = remote_calls_.asked() >= 0;
    if (is_asked && remote_calls_.is_answered() && remote_calls_.find_difference()) {
      return mismatch(*pending);
    }
    const std::uint32_t looks = ++pending->looks;
    if (!std::has_single_bit(looks) && looks % kLooksAtMost != 0) continue;
    if (is_asked && !remote_calls_.is_answered()) continue;
    remote_calls_.ask(*job_.network(), other, job_ranks_[static_cast<std::size_t>(other)]);
  }
}

// A message of another call may be anybody's: the members on other hosts are asked, one after the
// other. False: the search is over, or there is no need of one.
bool Communicator::search_difference() {
  if (remote_.empty() || find_difference()) return false;
  const bool is_asked = remote_calls_.asked() >= 0;
  const int asked = remote_calls_.asked();
  if (is_asked && !remote_calls_.is_answered() && state_of(asked) == RankState::present) {
    machine_.network->awaits(job_ranks_[static_cast<std::size_t>(asked)]);
    return true;
  }
  if (is_asked && remote_calls_.is_answered() && remote_calls_.find_difference()) return false;
  // Twice: the calls of one may have come to others before it is asked, and those before not.
  if (searched_ == 2 * std::ssize(remote_)) return false;
  const int next = remote_[static_cast<std::size_t>(searched_++ % std::ssize(remote_))];
  remote_calls_.ask(*job_.network(), next, job_ranks_[static_cast<std::size_t>(next)]);
  return true;
}

std::optional<Communicator::Difference> Communicator::find_difference() const {
  std::map<std::uint64_t, RecordCopy> own;
  for (const RecordCopy& record : read_records(small_, bulk_, rank_)) {
    own.emplace(record.index, record);
  }
  std::optional<Difference> first;
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    for (const RecordCopy& theirs : read_records(small_, bulk_, r)) {
      const auto mine = own.find(theirs.index);
      if (mine == own.end() || mine->second.digest == theirs.digest) continue;
      if (!first || theirs.index < first->own.index) first = Difference{r, mine->second, theirs};
    }
  }
  return first;
}

void Communicator::wrong_length(const Pending& pending) {
  const auto [expected, sent] = pending.operation.lengths();
  const engine::Plan& plan = pending.operation.plan();
  const int sender = pending.operation.awaited();
  fail_all(
      Code::mismatch,
      fmt::format("{} sends {} bytes to {}, which expects {} (operation {}: {}); the counts of "
                  "the two calls have to agree",
                  name_rank(sender), sent, name_rank(rank_), expected, pending.operation.index(),
                  call_name(plan.collective)),
      pending.operation.index());
}

// A rank that has completed its part will send nothing more in it: who still waits for it expects a
// message that it does not know of.
void Communicator::examine_silence() {
  if (!machine_.direct) return;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Pending* const pending = active_[i];
    const engine::Operation& operation = pending->operation;
    if (operation.plan().helping || !operation.entered()) continue;
    const int peer = operation.awaited();
    const std::uint64_t sequence = operation.sequence();
    // What a rank of another host has sent may still be on its way.
    if (peer < 0 || peer == rank_ || is_remote(peer) ||
        !operation.lane().completed_by(peer, sequence))
      continue;
    progress();
    if (i >= active_.size() || active_[i] != pending || operation.sequence() != sequence ||
        operation.awaited() != peer) {
      return;  // it was there
    }
    const engine::Plan& plan = operation.plan();
    fail_all(
        Code::mismatch,
        fmt::format("{} waits in operation {} ({}) for {}, which has completed its part: their "
                    "counts do not agree on who sends to whom",
                    name_rank(rank_), operation.index(),
                    describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                    name_rank(peer)),
        operation.index());
    return;
  }
}

void Communicator::unreadable(const Pending& pending) {
  fail_all(Code::unsupported,
           fmt::format("{} cannot read the memory of {}: {}; set UNISONO_SINGLE_COPY=off to go "
                       "through buffers",
                       name_rank(rank_), name_rank(pending.operation.awaited()),
                       machine_.transport->pull_error()),
           pending.operation.index());
}

// A message that `pending` waits for belongs to another call, or never comes because of one: the
// calls differ there or before. The record of that call may not be there yet, and one of a later
// call that differs as well may be.
void Communicator::mismatch(const Pending& pending) {
  const std::uint64_t index = pending.operation.index();
  const auto difference = find_difference();
  if (difference && difference->own.index <= index) return tell_difference(*difference);
  const bool is_known = remote_calls_.asked() >= 0 && remote_calls_.is_answered();
  const auto remote = is_known ? remote_calls_.find_difference() : std::nullopt;
  // Not whom the operation awaits: the message may have come to another's place, or to a program
  // that this rank has helped with.
  if (!remote) return tell_meeting(pending, size() == 2 ? 1 - rank_ : -1);
  const auto first = std::ranges::find_if(active_, [&](const Pending* other) {
    return other->operation.index() >= *remote || other == &pending;
  });
  tell_meeting(**first, remote_calls_.asked());
}

void Communicator::tell_meeting(const Pending& pending, int other) {
  const std::uint64_t index = pending.operation.index();
  const engine::Plan& plan = pending.operation.plan();
  const std::string text =
      fmt::format("{} called {}, but {} something else, now or before", name_rank(rank_),
                  describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                  other < 0 ? "another rank" : name_rank(other));
  fail_all(Code::mismatch, difference_text(index, text), index);
}

void Communicator::tell_difference(const Difference& difference) {
  const std::uint64_t index = difference.own.index;
  const std::string own = difference.own.describe();
  const std::string theirs = difference.theirs.describe();
  const std::string text = fmt::format(
      "{} called {}, {} called {}", name_rank(rank_), own, name_rank(difference.other),
      own != theirs ? theirs
                    : "the same, but with other blocks, another algorithm or element size (do "
                      "counts of blocks, UNISONO_* settings or user-defined types differ?)");
  fail_all(Code::mismatch, difference_text(index, text), index);
}

void Communicator::examine_deadline() {
  if (active_.empty()) return;  // what was found before has ended all
  const std::int64_t limit = job_.settings().time_ns(base::Setting::timeout);
  Pending& oldest = *active_.front();
  const std::int64_t now = base::now_ns();
  if (oldest.started_ns == 0) oldest.started_ns = now;
  if (limit <= 0 || now - oldest.started_ns < limit) return;
  const engine::Plan& plan = oldest.operation.plan();
  fail_all(Code::timeout,
           fmt::format("{} (operation {}) was not complete after {} ms (UNISONO_TIMEOUT): {}",
                       describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                       oldest.operation.index(), limit / 1'000'000, missing(oldest)),
           oldest.operation.index());
}

std::string Communicator::missing(const Pending& pending) const {
  if (!pending.operation.entered()) {
    const int late = pending.operation.lane().laggard(pending.operation.sequence());
    if (late >= 0) return fmt::format("{} is still in operations before it", locate_rank(late));
  }
  std::vector<std::string> absent;
  for (int r = 0; r < size(); ++r) {
    if (is_remote(r)) continue;  // its records are on its host
    const auto record =
        read_record(pending.operation.lane().record(pending.operation.sequence(), r));
    if (!record || record->sequence < pending.operation.sequence()) {
      absent.push_back(name_rank(r));
    }
  }
  if (absent.empty()) {
    return remote_.empty() ? "all ranks have called it, but some have not done their part"
                           : "all ranks of this host have called it";
  }
  return fmt::format("not called by {}", fmt::join(absent, ", "));
}

}  // namespace unisono::group
