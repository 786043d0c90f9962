// SPDX-License-Identifier: BSD-3-Clause
#include "comm/watch/watchdog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "comm/nic/nic_engine.hpp"
#include "comm/watch/thorough_look.hpp"

namespace unisono::comm {
namespace {

using base::Code;
using select::EngineKind;

bool is_in_nic(const engine::Operation& operation) {
  return operation.plan->engine == EngineKind::nic;
}

// When the oldest operation was first seen to wait. A wait for something else has no beginning.
std::int64_t longest_wait_from_ns(const OperationQueue& queue, std::int64_t now_ns) {
  if (queue.active().empty()) return 0;
  const std::int64_t started_ns = queue.active().front()->started_ns;
  return started_ns == 0 ? now_ns : started_ns;
}

}  // namespace

Watchdog::Watchdog(const Members& members, OperationQueue& queue, FailureState& failures,
                   CallCheck& calls, const Ends& ends)
    : members_(members),
      queue_(queue),
      failures_(failures),
      calls_(calls),
      ends_(ends),
      // A member may have called, and failed, before: the first check sees it.
      events_seen_(members.job().events().count() - 1),
      pause_ns_(kThoroughlyEveryNs) {}

void Watchdog::examine(bool thoroughly) {
  // An update from another host may have overtaken the packets that it refers to.
  const bool anew = thoroughly && !members_.on_one_host();
  if (has_new_event() || anew) [[unlikely]]
    handle_events();
  if (someone_gone_) [[unlikely]]
    examine_members();
  if (!thoroughly || queue_.active().empty()) return;
  if (!members_.on_one_host()) ask_for_failure();
  calls_.examine();
  examine_silence();
  if (nic_ != nullptr) nic_->examine();
  if (examine_ends()) return;
  examine_stops();
  examine_deadline();
}

void Watchdog::handle_events() {
  events_seen_ = members_.job().events().count();
  // In this order: a rank of this host that leaves because of a failure has shown the failure
  // before.
  for (int r = 0; r < members_.size(); ++r) someone_gone_ |= !members_.lives(r);
  failures_.adopt();
  if (someone_gone_) failures_.updates().pass_on_again();
}

void Watchdog::examine_after_sleep() {
  const std::int64_t now = base::now_ns();
  if (!is_thorough_look_due(now, examined_ns_, longest_wait_from_ns(queue_, now), pause_ns_)) {
    return examine(false);
  }
  const std::int64_t before = base::thread_time_ns();
  examine(true);
  const std::int64_t look_ns = base::thread_time_ns() - before;
  examined_ns_ = base::now_ns();
  job::Job& job = members_.job();
  pause_ns_ =
      pause_between_looks_ns(look_ns, job.cores().ranks_per_core(), job.watch().interval_ns());
}

void Watchdog::examine_now_and_then() {
  const std::int64_t now = base::now_ns();
  const bool due = now - examined_ns_ > members_.job().watch().interval_ns();
  if (due) {
    examined_ns_ = now;
    members_.job().watch().look(now);
  }
  examine(due);
}

// Asks a rank that this one waits for whether it knows of a failure that ends the wait. A rank that
// died may have failed to pass on the update.
void Watchdog::ask_for_failure() {
  for (const Pending* pending : queue_.active()) {
    if (is_in_nic(pending->operation)) continue;
    const int rank = pending->operation.engine->awaited(pending->operation);
    if (rank >= 0 && members_.is_remote(rank)) {
      return failures_.updates().ask_now_and_then(rank);
    }
  }
}

// Its call has returned, so the next multicast tells. A wait fails by itself if it needs the lost
// rank, and a communicator without operations in progress does not fail. If another host knew of
// the loss first, this rank learns soon who is lost.
void Watchdog::examine_multicasts() {
  if (members_.on_one_host()) return;
  const auto failed = queue_.multicast_results().first_failed();
  if (!failed || failures_.has_failed()) return;
  const auto is_lost = [this](int r) {
    return members_.job().ranks().is_lost(members_.job_rank(r));
  };
  const auto lost = std::ranges::find_if(members_.remote(), is_lost);
  if (lost == members_.remote().end()) return;
  failures_.fail_all(
      Code::rank_lost,
      fmt::format("{}: what {} multicast in operation {} may not have come to it",
                  members_.describe_loss(*lost), members_.name(members_.rank()), *failed),
      *failed, *lost);
}

void Watchdog::examine_members() {
  for (const Pending* pending : std::vector<Pending*>(queue_.active())) {
    if (is_in_nic(pending->operation)) {
      if (nic_->examine_members()) return;
      continue;
    }
    for (int r = 0; r < members_.size(); ++r) {
      if (!members_.lives(r) && examine_member(*pending, r)) return;
    }
  }
}

// A member that is gone matters to an operation only if it had not completed its part of it. True:
// no further check is needed.
bool Watchdog::examine_member(const Pending& pending, int rank) {
  const engine::Operation& operation = pending.operation;
  const auto waits = [&] { return operation.engine->awaited(operation) == rank; };
  // A rank of another host may have ended while its messages were under way.
  const bool lacks =
      members_.is_remote(rank) && members_.state(rank) != job::RankState::left && waits();
  if (operation.engine->completed_by(operation, rank) && !lacks) return false;
  if (lacks) {  // it may have come since, before the update about the rank's end
    queue_.advance([this](const Pending& stuck, engine::Outcome outcome) {
      return calls_.fail(stuck, outcome);
    });
    const bool is_active = std::ranges::find(queue_.active(), &pending) != queue_.active().end();
    if (!is_active || !waits()) return true;
  }
  // It may have reported a failure and left since this rank last checked.
  const std::uint64_t index = operation.index;
  failures_.adopt();
  if (failures_.has_failed_by(index) || failures_.is_being_reported() ||
      failures_.may_have_known(rank)) {
    return true;
  }
  failures_.fail_all(
      Code::rank_lost,
      fmt::format("{}: {} cannot complete", members_.describe_loss(members_.cause_of_loss(rank)),
                  describe(operation)),
      index, members_.cause_of_loss(rank));
  return true;
}

// A member that has ended the communicator, though it lives, does nothing more in it. True if an
// operation fails because of that.
bool Watchdog::examine_ends() {
  for (int r = 0; r < members_.size(); ++r) {
    if (r == members_.rank() || !members_.lives(r)) continue;
    const auto end = ends_.of(r);
    if (!end || end->has_failed) continue;  // the failure is reported
    const auto lacking = std::ranges::find_if(queue_.active(), [&](const Pending* pending) {
      const engine::Operation& operation = pending->operation;
      if (operation.index >= end->index) return true;
      // The completed operations of a rank of another host may become known later.
      return !members_.is_remote(r) && !is_in_nic(operation) &&
             !operation.engine->completed_by(operation, r);
    });
    if (lacking == queue_.active().end()) continue;
    const engine::Operation& operation = (*lacking)->operation;
    failures_.fail_without(r, describe(operation), operation.index);
    return true;
  }
  return false;
}

// A rank that is stopped for good is declared lost, which raises an event.
void Watchdog::examine_stops() {
  const std::int64_t now = base::now_ns();
  const std::int64_t limit = members_.job().settings().time_ns(base::Setting::detect_timeout);
  if (!may_look_at_processes(now, limit, longest_wait_from_ns(queue_, now))) return;
  const auto waits_for = [this](int rank) {
    return std::ranges::any_of(queue_.active(), [rank](const Pending* pending) {
      return !pending->operation.engine->completed_by(pending->operation, rank);
    });
  };
  for (const int r : members_.here()) {
    if (r == members_.rank() || !waits_for(r)) continue;
    members_.job().watch().is_stopped(members_.job_rank(r));
  }
}

// A rank that has completed its part sends nothing more in it. A rank that still waits for it
// expects a message that the other does not know of.
void Watchdog::examine_silence() {
  if (!queue_.machine().router.stores_here()) return;
  for (std::size_t i = 0; i < queue_.active().size(); ++i) {
    const Pending* const pending = queue_.active()[i];
    const engine::Operation& operation = pending->operation;
    if (operation.plan->engine != EngineKind::inline_ || !operation.host.entered()) continue;
    const int peer = operation.host.awaited();
    const std::uint64_t sequence = operation.host.sequence();
    // Messages of a rank of another host may still be under way.
    if (peer < 0 || peer == members_.rank() || members_.is_remote(peer) ||
        !operation.engine->completed_by(operation, peer)) {
      continue;
    }
    queue_.advance([this](const Pending& stuck, engine::Outcome outcome) {
      return calls_.fail(stuck, outcome);
    });
    if (i >= queue_.active().size() || queue_.active()[i] != pending ||
        operation.host.sequence() != sequence || operation.host.awaited() != peer) {
      return;  // it was there
    }
    failures_.fail_all(
        Code::mismatch,
        fmt::format("{} waits in operation {} ({}) for {}, which has completed its part: their "
                    "counts do not agree on who sends to whom",
                    members_.name(members_.rank()), operation.index, describe_plan(*operation.plan),
                    members_.name(peer)),
        operation.index, peer);
    return;
  }
}

void Watchdog::examine_deadline() {
  if (queue_.active().empty()) return;  // an earlier check has ended all
  const std::int64_t limit = members_.job().settings().time_ns(base::Setting::timeout);
  Pending& oldest = *queue_.active().front();
  const std::int64_t now = base::now_ns();
  if (oldest.started_ns == 0) oldest.started_ns = now;
  if (limit <= 0 || now - oldest.started_ns < limit) return;
  failures_.fail_all(
      Code::timeout,
      fmt::format("{} was not complete after {} ms (UNISONO_TIMEOUT){}", describe(oldest.operation),
                  limit / base::kMillisecond, missing(oldest.operation)),
      oldest.operation.index);
}

void Watchdog::fail_late() {
  if (queue_.active().empty()) return;
  const engine::Operation& oldest = queue_.active().front()->operation;
  failures_.fail_all(Code::timeout,
                     fmt::format("{} was not complete at the deadline of {}{}", describe(oldest),
                                 members_.name(members_.rank()), missing(oldest)),
                     oldest.index);
}

MemberState Watchdog::state_of(int member) {
  using Kind = MemberState::Kind;
  job::RankWatch& watch = members_.job().watch();
  watch.look(base::now_ns());
  if (!members_.is_remote(member)) watch.is_stopped(members_.job_rank(member));
  if (!members_.lives(member)) {
    const bool has_left = members_.state(member) == job::RankState::left;
    return {.kind = has_left ? Kind::left : Kind::lost, .why = members_.describe_loss(member)};
  }
  if (member == members_.rank() || !ends_.of(member)) return {};
  return {.kind = Kind::left,
          .why = fmt::format("{} has ended its use of the communicator", members_.name(member))};
}

std::string Watchdog::missing(const engine::Operation& operation) const {
  if (is_in_nic(operation)) return {};
  const engine::Stall stall = operation.engine->describe_stall(operation);
  if (stall.late >= 0) {
    return fmt::format(": {} is still in operations before it", members_.locate(stall.late));
  }
  std::vector<std::string> absent;
  for (const int rank : stall.not_called) {
    // The records of ranks on other hosts are there.
    if (!members_.is_remote(rank)) absent.push_back(members_.name(rank));
  }
  if (!absent.empty()) return fmt::format(": not called by {}", fmt::join(absent, ", "));
  return members_.on_one_host() ? ": all ranks have called it, but some have not done their part"
                                : ": all ranks of this host have called it";
}

}  // namespace unisono::comm
