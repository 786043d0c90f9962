// SPDX-License-Identifier: BSD-3-Clause
#include "comm/nic/nic_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "comm/nic/nic_leave.hpp"
#include "engine/nic/nic_patience.hpp"
#include "wait/short_slices.hpp"

namespace unisono::comm {
namespace {

using base::Code;
using base::Error;
using engine::Operation;
using engine::Outcome;
using namespace engine::nic_patience;

// A result is there in microseconds if all ranks have called. A rank looks this often before it
// does anything else, and this often in each later turn. The core may be needed by ranks that have
// not called: 2000 looks made calls half as long again with more ranks than cores.
constexpr int kFirstLooks = 100;
constexpr int kLooks = 20;
// After its turns it sleeps until it is woken, or polls with short sleeps, which get longer, where
// the program does not wake it.
constexpr std::int64_t kFirstPauseNs = 20 * base::kMicrosecond;
constexpr std::int64_t kLongestPauseNs = base::kMillisecond;

bool has_come(engine::NicGroup& group, engine::NicFlight* flight) {
  if (flight == nullptr) return false;
  const auto done = group.poll(*flight);
  return done && *done;
}

// A rank that takes nothing need not wait for the result: the non-root ranks of a reduce, and the
// root of a broadcast. It waits until the sum of its subtree is on its way. From then on its
// program answers for it, and no other rank needs its process.
bool may_return(const engine::NicOperation& own) {
  return !own.call.takes && own.flight->given() == ~std::uint32_t{0};
}

}  // namespace

NicEngine::NicEngine(const Members& members, const Segment& segment, OperationQueue& queue,
                     FailureState& failures, std::unique_ptr<NicPath> path)
    : members_(members),
      queue_(queue),
      failures_(failures),
      contention_(members.job().cores().contention()),
      path_(std::move(path)),
      peers_(members, segment, *path_),
      order_(path_->completed) {}

NicEngine::~NicEngine() = default;

void NicEngine::start(Operation& operation, const plan::Plan& plan, const engine::Launch& launch) {
  operation.nic = {.call = *plan.nic, .input = launch.input, .output = launch.output};
  operation.nic.call.combine |= launch.history << UNISONO_NIC_COMBINE_BITS;
  operation.nic.history = launch.history;
  order_.add(operation);
  post();
}

// Posts what the group has room for. The first operation has room once all ranks have called those
// before it. So all ranks can go on to an operation that any of them has posted.
void NicEngine::post() {
  for (Operation* const operation : order_.all()) {
    engine::NicOperation& own = operation->nic;
    if (own.flight != nullptr) continue;
    if (error_ || !path_->group->may_start(own.call)) return;
    const auto flight = path_->group->start(own.call, own.input, own.output);
    if (!flight) {
      fail(*operation, flight.error());
      return;
    }
    own.flight = *flight;
    if (!path_->group->failure()) continue;
    if (const auto done = path_->group->poll(**flight); !done) {
      fail(*operation, done.error());
      return;
    }
  }
}

Outcome NicEngine::step(Operation& operation) {
  collect();
  if (error_ && operation.index >= error_from_) return Outcome::failed;
  engine::NicOperation& own = operation.nic;
  if (own.flight == nullptr) {
    post();
    if (own.flight == nullptr) return error_ ? Outcome::failed : Outcome::blocked;
  }
  const bool is_first = &operation == order_.first_awaited();
  const int patient = std::exchange(own.has_looked, true) ? kLooks : kFirstLooks;
  const int looks = is_first ? patient : 1;
  const bool took_turns = patient == kLooks && own.pause_ns == 0;
  for (int i = 0; i < looks; ++i) {
    if (may_return(own)) return detach(operation);
    const auto done = path_->group->poll(*own.flight);
    if (!done) return fail(operation, done.error());
    if (!*done) continue;
    if (is_first && took_turns) contention_.saw_result(own.flight->done_ns(), base::now_ns());
    return finish(operation);
  }
  if (is_first && own.examined_ns != 0 && own.flight->awaits_blocks()) publish_given(own);
  return Outcome::blocked;
}

// Other hosts may have seen how many pieces of an allgather this one had given. They must not take
// what it gives later to be lost because they know too few.
void NicEngine::publish_given(engine::NicOperation& own) {
  if (own.said_given == own.flight->given()) return;
  own.said_given = own.flight->given();
  publish();
}

Outcome NicEngine::finish(Operation& operation) {
  if (const base::Status taken = path_->group->take(*operation.nic.flight); !taken) {
    return fail(operation, taken.error());
  }
  disarm(operation);
  path_->completed = order_.remove(operation);
  post();
  publish();
  return Outcome::finished;
}

Outcome NicEngine::detach(Operation& operation) {
  disarm(operation);
  order_.detach(operation);
  publish();
  return Outcome::finished;
}

// Frees the places of detached operations that are done. An error of one is that of the next call.
void NicEngine::collect() {
  while (Operation* const first = order_.first_detached()) {
    if (error_) return;
    const auto done = path_->group->poll(*first->nic.flight);
    if (done && !*done) return;
    const base::Status taken =
        done ? path_->group->take(*first->nic.flight) : base::Status(done.error());
    if (!taken) {
      fail(*first, taken.error());
      return;
    }
    path_->completed = order_.remove(*first);
  }
}

// True if it was armed.
bool NicEngine::disarm(Operation& operation) {
  if (!std::exchange(operation.nic.is_armed, false)) return false;
  operation.nic.flight->disarm();
  return true;
}

Outcome NicEngine::fail(const Operation& operation, const Error& why) {
  if (error_ && error_from_ <= operation.index) return Outcome::failed;
  error_from_ = operation.index;
  if (why.code == Code::mismatch) {
    const auto& other = path_->group->mismatching_rank();
    error_ = difference(operation, other ? path_->rank_of(*other) : -1);
  } else {
    error_ = Error{why.code, fmt::format("{} ends at {}: {}", describe(operation),
                                         members_.name(members_.rank()), why.message)};
  }
  return Outcome::failed;
}

Error NicEngine::error(const Operation& operation) const {
  static_cast<void>(operation);
  return *error_;
}

// A failure may be reported in the middle of an operation, which then makes no more requests. All
// later operations are cancelled as well.
void NicEngine::cancel(Operation& operation) {
  disarm(operation);
  if (!order_.cancel(operation)) return;
  const Operation* const first = order_.first_detached();
  if (first != nullptr && failures_.has_failed_by(first->index)) order_.drop_detached();
  if (!order_.is_empty()) return;
  NicProgress own = progress();
  own.ended = true;
  peers_.publish(own);
}

Error NicEngine::difference(const Operation& operation, int other) const {
  return {
      Code::mismatch,
      fmt::format("the ranks' calls differ at operation {} of the communicator: {} called {}, "
                  "but {} something else, now or before. All ranks have to make the same calls "
                  "in the same order",
                  operation.index, members_.name(members_.rank()), describe_plan(*operation.plan),
                  other < 0 ? "another rank" : members_.name(other))};
}

int NicEngine::awaited(const Operation& operation) const {
  static_cast<void>(operation);
  return -1;
}

bool NicEngine::completed_by(const Operation& operation, int rank) const {
  static_cast<void>(operation);
  static_cast<void>(rank);
  return false;
}

// A rank's progress word says no more than whether it has called the first operation.
engine::Stall NicEngine::describe_stall(const Operation& operation) const {
  engine::Stall stall;
  const Operation& first = order_.is_empty() ? operation : *order_.first();
  for (const NicPath::Neighbour& next : path_->neighbours) {
    const auto other = peers_.of(next);
    if (next.here && other && has_fewer_calls(*other, first.index + 1)) {
      stall.not_called.push_back(next.rank);
    }
  }
  return stall;
}

bool NicEngine::sleeps_at_once(std::int64_t now_ns) const {
  return order_.first_awaited() != nullptr && contention_.is_there(now_ns);
}

// A rank sleeps until it is woken, if the program does that. One that looks between short sleeps is
// late by half a sleep, and by the kernel's slack. The first operation decides. If it is to wake
// the rank, others with the same descriptor may do so as well.
//
// One that is not posted waits for room, which an acknowledgement or a detached one has. The rank
// is then ahead of others, which have results to take meanwhile. It must not be woken in the call
// of the last of them, which it would delay.
engine::SleepTarget NicEngine::prepare_sleep(Operation& operation, std::int64_t limit_ns) {
  const Operation* const first = order_.first_awaited();
  engine::NicOperation& own = operation.nic;
  const std::int64_t now_ns = base::now_ns();
  if (own.flight != nullptr) limit_ns = std::min(limit_ns, own.flight->question_in_ns(now_ns));
  if (&operation != first) {
    if (first == nullptr || !first->nic.is_armed || own.flight == nullptr ||
        own.flight->wake_descriptor() != first->nic.flight->wake_descriptor()) {
      return {.limit_ns = limit_ns};
    }
    own.is_armed = true;
    return {.limit_ns = own.flight->arm() ? limit_ns : 0};
  }
  std::int64_t& pause_ns = own.pause_ns;
  if (!path_->group->is_woken() || own.flight == nullptr) {
    pause_ns = std::clamp(pause_ns, kFirstPauseNs, kLongestPauseNs);
    return {.limit_ns = std::min(limit_ns, pause_ns)};
  }
  const bool may_ask =
      members_.job().cores().wait_policy().short_slices != wait::ShortSlices::never;
  if (may_ask && sleeps_at_once(now_ns)) wait::ask_for_short_slices();
  pause_ns = std::max(pause_ns, kFirstSleep);
  limit_ns = std::min(limit_ns, pause_ns);
  own.is_armed = true;
  if (!own.flight->arm()) return {.limit_ns = 0};  // the result is there
  return {.limit_ns = limit_ns, .descriptor = own.flight->wake_descriptor()};
}

void NicEngine::after_sleep(Operation& operation, bool was_woken) {
  std::int64_t& pause_ns = operation.nic.pause_ns;
  const bool was_armed = disarm(operation);
  if (&operation != order_.first_awaited()) return;
  if (!was_armed) {
    pause_ns *= 2;
  } else if (!was_woken) {
    pause_ns = std::min(2 * pause_ns, kLongestSleep);
  }
}

// The calls of detached operations have returned, so all later ones are told of the error.
void NicEngine::report_error() {
  if (error_) failures_.fail_all(error_->code, error_->message, error_from_);
}

void NicEngine::examine() {
  collect();
  if (order_.first_detached() != nullptr) report_error();
  Operation* const operation = order_.first();
  if (operation == nullptr || failures_.has_failed_by(operation->index)) return;
  if (const base::Status there = path_->group->repair(); !there) {
    fail(*operation, there.error());
    failures_.fail_all(error_->code, error_->message, operation->index);
    return;
  }
  await_silence();
  const std::int64_t now = base::now_ns();
  engine::NicOperation& own = operation->nic;
  if (own.examined_ns == 0) {
    own.examined_ns = now;
    publish();  // others that wait for this rank compare its call with theirs
  }
  if (now - own.examined_ns < members_.job().watch().interval_ns()) return;
  own.examined_ns = now;
  publish();
  examine_progress(*operation);  // from the answers to the last requests
  if (failures_.has_failed_by(operation->index)) return;
  for (NicPath::Neighbour& next : path_->neighbours) {
    if (path_->may_wait_for(next)) peers_.ask(next);
  }
  ask_for_failure();
}

// Neighbours on other hosts in turn; the other ranks of the host find it in their memory.
void NicEngine::ask_for_failure() {
  const auto may_know = [this](const NicPath::Neighbour& next) {
    return !next.here && path_->may_wait_for(next) && members_.lives(next.rank);
  };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(path_->neighbours, may_know));
  if (count == 0) return;
  std::uint64_t turn = failures_.updates().asked() % count;
  for (const auto& next : path_->neighbours) {
    if (may_know(next) && turn-- == 0) return failures_.updates().ask(next.rank);
  }
}

// The silence of ranks on other hosts that may hold up this one is noticed.
void NicEngine::await_silence() {
  const auto await = [this](int rank) {
    members_.job().network()->awaits(members_.job_rank(rank));
  };
  if (path_->waits_on_trees()) std::ranges::for_each(path_->awaited, await);
  for (const auto& next : path_->neighbours) {
    if (next.here || !path_->lacks_block_of(next)) continue;
    std::ranges::for_each(path_->hosts.members(path_->hosts.of(next.rank)), await);
  }
}

// A member that has left had completed the operation, if it has said so. But no leader leaves
// before those below it have their results as well, and after an allgather none leaves before all
// have.
bool NicEngine::examine_members() {
  Operation* const operation = order_.first();
  if (operation == nullptr) return false;
  for (int r = 0; r < members_.size(); ++r) {
    const job::RankState state = members_.state(r);
    if (state == job::RankState::present) continue;
    const auto last = peers_.leave_record_of(r);
    const bool would_stay = path_->stays_for(r);
    if (state == job::RankState::left && !would_stay && last && has_result(progress(), *last))
      continue;
    // It may have ended with the result, which this rank has not seen yet.
    if (has_come(*path_->group, operation->nic.flight)) return false;
    // It may have reported a failure and left since this rank last checked. Or the update about the
    // failure was overtaken by the one about its end. A failure of a later operation is a reason,
    // too.
    failures_.adopt();
    if (failures_.has_failed_by(operation->index) || failures_.is_being_reported()) return true;
    std::int64_t& left_since_ns = operation->nic.left_since_ns;
    if (state == job::RankState::left && left_since_ns == 0) left_since_ns = base::now_ns();
    const bool may_come = state == job::RankState::left && members_.is_remote(r) &&
                          base::now_ns() - left_since_ns <
                              job::SilenceLimits::of(members_.job().settings()).suspect_ns;
    if (may_come && !failures_.has_failed()) continue;
    if (failures_.has_failed()) {
      const Error why = failures_.failure().error;
      failures_.fail_all(why.code, why.message, operation->index, failures_.failure().rank);
    } else {
      failures_.fail_all(
          Code::rank_lost,
          fmt::format("{}: {} cannot complete", members_.describe_loss(members_.cause_of_loss(r)),
                      describe(*operation)),
          operation->index, members_.cause_of_loss(r));
    }
    return true;
  }
  return false;
}

// Whether a neighbour reports that it has sent everything the operation lacks. If no rank delays
// it, a host waits on a tree for one of two things. If it has contributed, it waits for its parent,
// otherwise for its children.
bool NicEngine::is_owed_by(const NicPath::Neighbour& next, const NicProgress& own,
                           const std::optional<NicProgress>& other) const {
  const engine::NicFlight& flight = path_->group->oldest();
  if (flight.awaits_blocks()) {
    return !path_->lacks_block_of(next) ||
           (other && has_given_piece(own, *other, flight.finished()));
  }
  const std::uint32_t lacking = flight.lacking();
  for (int tree = 0; lacking >> tree != 0; ++tree) {
    const std::uint32_t bit = lacking & std::uint32_t{1} << tree;
    const bool given = (own.given & bit) != 0;
    if ((next.above & bit) != 0 && given && !(other && has_result(own, *other))) return false;
    if ((next.below & bit) != 0 && !given && !(other && has_given(own, *other, tree))) return false;
  }
  return true;
}

std::optional<std::uint64_t> find_different_call(OperationQueue& own, const NicProgress& other) {
  const std::uint64_t behind = calls_behind(own.next_index(), other);
  if (other.ended || behind >= own.next_index()) return std::nullopt;
  const std::uint64_t index = own.next_index() - behind - 1;
  const std::uint32_t then = own.remote_calls().history_of(index);
  if (then == 0 || then == other.history) return std::nullopt;
  return index;
}

void fail_at_difference(const Members& members, FailureState& failures, std::uint64_t index,
                        int other) {
  failures.fail_all(Code::mismatch,
                    fmt::format("the ranks' calls differ at operation {} of the communicator: {} "
                                "called something else than {}, then or before. All ranks have to "
                                "make the same calls in the same order",
                                index, members.name(other), members.name(members.rank())),
                    index, other);
}

// Ranks may be late for any time. Only the leader of a host misses packets that were sent to the
// host; its other ranks wait for ranks of their host only.
void NicEngine::examine_progress(Operation& operation) {
  const NicProgress own = progress();
  const engine::NicFlight& flight = path_->group->oldest();
  bool owed = path_->group->leads() && flight.is_host_complete();
  for (const auto& next : path_->neighbours) {
    if (!path_->may_wait_for(next)) continue;
    const auto other = peers_.of(next);
    if (other && calls_differ(own, *other)) {
      failures_.adopt();  // that may be why it has gone on
      if (failures_.has_failed_by(operation.index)) return;
      const Error why = difference(operation, next.rank);
      failures_.fail_all(why.code, why.message, operation.index, next.rank);
      return;
    }
    const auto different = other ? find_different_call(queue_, *other) : std::nullopt;
    if (different) {
      failures_.adopt();
      if (failures_.has_failed_by(operation.index)) return;
      return fail_at_difference(members_, failures_, *different, next.rank);
    }
    if (!next.here) owed &= is_owed_by(next, own, other);
  }
  const std::int64_t now = base::now_ns();
  std::int64_t& owed_since_ns = operation.nic.owed_since_ns;
  const std::uint32_t before = std::exchange(operation.nic.owed_piece, flight.finished());
  if (!owed || before != flight.finished()) owed_since_ns = 0;
  if (owed && owed_since_ns == 0) owed_since_ns = now;
  const std::int64_t limit = job::SilenceLimits::of(members_.job().settings()).lost_ns;
  if (!owed || now - owed_since_ns < limit) return;
  failures_.fail_all(
      Code::system,
      fmt::format("{} gets no further at {}: all that it lacks has been sent, and does not come. "
                  "The network drops packets of the NIC path, or a unisonod has ended "
                  "(UNISONO_NIC=off goes without)",
                  describe(operation), members_.name(members_.rank())),
      operation.index);
}

// While operations are posted, the progress word describes the first, whatever the rank has called
// since.
NicProgress NicEngine::progress() const {
  const Operation* const first = order_.first();
  NicProgress own = {.history = queue_.history(),
                     .calls = nic_calls(queue_.next_index()),
                     .completed = nic_completed(path_->completed),
                     .returned = order_.detached(),
                     .ended = failures_.has_failed()};
  if (first == nullptr) return own;
  own.history = first->nic.history;
  own.calls = nic_calls(first->index + 1);
  const auto& flight = first->nic.flight;
  own.given = (flight != nullptr ? *flight : path_->group->oldest()).given();
  own.ended = failures_.has_failed_by(first->index);
  return own;
}

void NicEngine::leave() {
  NicLeave leave(*this);
  leave.wait_for_results();
  leave.wait_for_neighbours();
  NicProgress own = progress();
  own.ended = true;
  peers_.publish(own);
  peers_.publish_leave_record();
}

}  // namespace unisono::comm
