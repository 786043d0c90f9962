// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that finds out why an operation does not go on: another rank reported a
// failure, a member is gone, the ranks called different things, or a deadline passed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
  if (is_news) {
    job_.raise_alarm();
    if (!remote_.empty()) tell_failure(failure);
  }
  // What stands in the record may be another rank's, from further ahead: a leaf of a reduce has
  // gone on long before its root finds that a member is lost.
  const auto told = read_failure(header_->failure);
  const Failure& known = told && told->cause <= index ? *told : failure;
  if (failure_ && known.index >= failure_->index) return;
  if (!is_news && !remote_.empty()) tell_failure(known);
  fail_pending(known);
}

// Each report has a word of its own, so that none can overtake another.
void Communicator::tell_failure(const Failure& failure) {
  if (reports_ == kMostReports) return;
  const bool last = reports_ == kMostReports - 1;
  FailureNotice& own = notices()[rank_];
  const FailureNotice::Text text = notice_text(failure);
  for (const int member : remote_) {
    const int target = job_ranks_[static_cast<std::size_t>(member)];
    // The text goes with the first report, and stays: later ones only fail more.
    if (reports_ == 0) {
      machine_.network->put({.target = target,
                             .source = reinterpret_cast<const std::byte*>(&text),
                             .place = reinterpret_cast<std::byte*>(&own.text),
                             .bytes = sizeof text});
    }
    machine_.network->put({.target = target,
                           .flag = reinterpret_cast<std::uint64_t*>(&own.ends[reports_]),
                           .flag_value = last ? 1 : failure.index + 1});
    job_.send_news(target);
  }
  ++reports_;
}

// The earliest one: this host's, or what a rank of another one has told.
std::optional<Failure> Communicator::known_failure() const {
  std::optional<Failure> known = read_failure(header_->failure);
  if (remote_.empty()) return known;
  // All ranks of a host get a notice, each writing the same.
  const auto held = job_.network()->hold();
  for (const int member : remote_) {
    const auto told = read_notice(notices()[member]);
    if (told && (!known || told->index < known->index)) known = told;
  }
  return known;
}

base::Error Communicator::refuse(Code code, const std::string& what) {
  // Another rank's failure of the same call, seen first, is no more news than this one's.
  if (!failure_ || next_index_ <= failure_->index) {
    fail_all(Code::peer_argument, fmt::format("invalid call on {}: {}", name_rank(rank_), what),
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
    // In this order, for who leaves because of a failure has told it before.
    for (const int member : job_ranks_) {
      someone_gone_ |= job_.state(member) != RankState::present;
    }
    adopt_failure();
  }
  if (someone_gone_) [[unlikely]]
    examine_members();
  if (!waited_long || active_.empty()) return;
  examine_calls();
  examine_silence();
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
  // Else others could hear that this rank has left because of it before they hear of it.
  if (!remote_.empty()) tell_failure(*failure);
  fail_pending(*failure);
}

// Operations before the failed one can still end well.
void Communicator::fail_pending(const Failure& failure) {
  failure_ = failure;
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
  for (const Pending* pending : active_) {
    for (int r = 0; r < size(); ++r) {
      const RankState state = state_of(r);
      if (state == RankState::present) continue;
      // From another host, what it sent may have been under way when it ended.
      const bool lacks =
          is_remote(r) && state != RankState::left && pending->operation.awaited() == r;
      const bool completed =
          pending->operation.lane().completed_by(r, pending->operation.sequence());
      if (completed && !lacks) continue;
      // It may have told of a failure and left since this rank looked for one.
      const std::uint64_t index = pending->operation.index();
      adopt_failure();
      if (has_failed_by(index) || is_being_told()) return;
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
  if (find_difference()) mismatch(*active_.front(), -1);
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

void Communicator::mismatch(const Pending& pending, int other) {
  std::uint64_t index = pending.operation.index();
  std::string text;
  if (const auto difference = find_difference()) {
    index = difference->own.index;
    const std::string own = difference->own.describe();
    const std::string theirs = difference->theirs.describe();
    text = fmt::format("{} called {}, {} called {}", name_rank(rank_), own,
                       name_rank(difference->other),
                       own != theirs ? theirs
                                     : "the same, but with other blocks, another algorithm or "
                                       "element size (do counts of blocks, UNISONO_* settings or "
                                       "user-defined types differ?)");
  } else {
    const engine::Plan& plan = pending.operation.plan();
    text = fmt::format("{} called {}, but {} something else, now or before", name_rank(rank_),
                       describe_call(plan.collective, plan.count, plan.type, plan.op, plan.root),
                       name_rank(std::max(other, 0)));
  }
  fail_all(Code::mismatch,
           fmt::format("the ranks' calls differ at operation {} of the communicator: {}; all ranks "
                       "have to make the same calls in the same order",
                       index, text),
           index);
}

void Communicator::examine_deadline() {
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
