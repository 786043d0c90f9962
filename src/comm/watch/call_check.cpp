// SPDX-License-Identifier: BSD-3-Clause
#include "comm/watch/call_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "plan/call.hpp"

namespace unisono::comm {
namespace {

using base::Code;
using engine::Outcome;
using engine::RecordCopy;

// At least one of this many checks of an operation asks another host.
constexpr std::uint32_t kLooksAtMost = 64;

std::string describe(const RecordCopy& record) {
  return plan::describe_call(record.collective, record.count, record.type, record.op, record.root);
}

// `settings`: Members::differing_settings().
std::string difference_text(std::uint64_t index, const std::string& calls,
                            const std::string& settings) {
  const std::string what =
      fmt::format("the ranks' calls differ at operation {} of the communicator: {}", index, calls);
  if (!settings.empty()) {
    return fmt::format("{}; these settings differ, set them alike on all ranks: {}", what,
                       settings);
  }
  return what + "; all ranks have to make the same calls in the same order";
}

}  // namespace

bool CallCheck::fail(const Pending& pending, Outcome outcome) {
  switch (outcome) {
    case Outcome::mismatch:
      if (search_difference(pending)) return false;
      fail_mismatch(pending);
      break;
    case Outcome::wrong_length:
      fail_wrong_length(pending);
      break;
    case Outcome::unreadable:
      fail_unreadable(pending);
      break;
    case Outcome::overtaken:
      failures_.adopt();
      if (job::is_being_reported(segment_.header().failure) && !failures_.is_being_reported()) {
        failures_.fail_all(Code::rank_lost, "a rank died while it reported why this call fails",
                           pending.operation.index);
      }
      // If there is none, a member is gone without its part: the watchdog finds that.
      return failures_.has_failed_by(pending.operation.index);
    case Outcome::failed: {
      const base::Error why = pending.operation.engine->error(pending.operation);
      const bool is_own = pending.operation.plan->engine != select::EngineKind::nic;  // operator
      failures_.fail_all(why.code, why.message, pending.operation.index,
                         is_own ? members_.rank() : -1);
      break;
    }
    case Outcome::finished:
    case Outcome::blocked:
      return false;
  }
  return true;
}

void CallCheck::examine() {
  tell_known_difference();
  if (!members_.on_one_host()) examine_remote_calls();
}

// The records have the details. The digests are kept for longer. A rank may go on in one size class
// while another waits in the other one for a call that differs.
void CallCheck::tell_known_difference() {
  const auto digest = find_digest();  // first: a call's record is there before its digest
  const auto difference = find_difference();
  if (difference && (!digest || difference->own.index <= digest->index)) {
    if (!failures_.has_failed_by(difference->own.index)) tell_difference(*difference);
  } else if (digest && !failures_.has_failed_by(digest->index)) {
    tell_digest(*digest);
  }
}

// The records of other hosts' ranks are on their hosts. A rank may be late, so it is asked
// repeatedly, at growing intervals.
void CallCheck::examine_remote_calls() {
  if (is_searching()) return;
  RemoteCalls& remote = queue_.remote_calls();
  for (Pending* const pending : queue_.active()) {
    const int other = pending->operation.engine->awaited(pending->operation);
    if (other < 0 || !members_.is_remote(other)) continue;
    const bool is_asked = remote.asked() >= 0;
    const std::uint32_t looks = ++pending->looks;
    if (!std::has_single_bit(looks) && looks % kLooksAtMost != 0) continue;
    if (is_asked && !remote.is_answered()) continue;
    remote.ask(*members_.job().network(), other, members_.job_rank(other));
  }
}

// A message of another call may be any rank's. The digests of this host's members are read. If none
// differs, the members on other hosts are asked, one after the other. False: the search is over, or
// is not needed.
bool CallCheck::search_difference(const Pending& pending) {
  if (members_.on_one_host() || find_difference() || find_digest()) return false;
  RemoteCalls& remote = queue_.remote_calls();
  network::Network& network = *members_.job().network();
  const bool is_asked = remote.asked() >= 0;
  const int asked = remote.asked();
  if (is_asked && !remote.is_answered() && members_.lives(asked)) {
    network.awaits(members_.job_rank(asked));
    return true;
  }
  if (!is_searching()) {
    searched_ = 0;
    searched_for_ = pending.operation.index;
  }
  // Each is asked twice: a rank's calls may have reached others before it is asked, but after those
  // before it were.
  const auto others = std::ssize(members_.remote());
  if (searched_ == 2 * others) return false;
  const int next = members_.remote()[static_cast<std::size_t>(searched_++ % others)];
  remote.ask(network, next, members_.job_rank(next));
  return true;
}

bool CallCheck::is_searching() const {
  return searched_ != 0 && std::ranges::any_of(queue_.active(), [this](const Pending* pending) {
           return pending->operation.index == searched_for_;
         });
}

std::optional<CallCheck::Digest> CallCheck::find_digest() const {
  const RemoteCalls& calls = queue_.remote_calls();
  std::optional<Digest> first;
  const auto consider = [&first](int member, std::optional<std::uint64_t> index) {
    if (index && (!first || *index < first->index)) first = Digest{member, *index};
  };
  for (const int r : members_.here()) {
    if (r != members_.rank()) consider(r, calls.find_difference_with(r));
  }
  if (calls.asked() >= 0 && calls.is_answered()) consider(calls.asked(), calls.find_difference());
  return first;
}

std::vector<RecordCopy> CallCheck::records_of(int rank) const {
  std::vector<RecordCopy> records;
  for (const engine::SizeQueue& size_queue : segment_.size_queues()) {
    const std::vector<RecordCopy> more = engine::read_records(size_queue, rank);
    records.insert(records.end(), more.begin(), more.end());
  }
  return records;
}

std::optional<CallCheck::Difference> CallCheck::find_difference() const {
  std::map<std::uint64_t, RecordCopy> own;
  for (const RecordCopy& record : records_of(members_.rank())) own.emplace(record.index, record);
  std::optional<Difference> first;
  for (int r = 0; r < members_.size(); ++r) {
    if (r == members_.rank()) continue;
    for (const RecordCopy& theirs : records_of(r)) {
      const auto mine = own.find(theirs.index);
      if (mine == own.end() || mine->second.digest == theirs.digest) continue;
      if (!first || theirs.index < first->own.index) first = Difference{r, mine->second, theirs};
    }
  }
  return first;
}

void CallCheck::fail_wrong_length(const Pending& pending) {
  const engine::Operation& operation = pending.operation;
  const auto [expected, sent] = operation.host.lengths();
  failures_.fail_all(
      Code::mismatch,
      fmt::format("{} sends {} bytes to {}, which expects {} (operation {}: {}); the counts of "
                  "the two calls have to agree",
                  members_.name(operation.host.awaited()), sent, members_.name(members_.rank()),
                  expected, operation.index, plan::call_name(operation.plan->collective)),
      operation.index, operation.host.awaited());
}

void CallCheck::fail_unreadable(const Pending& pending) {
  const engine::Operation& operation = pending.operation;
  failures_.fail_all(
      Code::unsupported,
      fmt::format("{} cannot read the memory of {}: {}; set UNISONO_SINGLE_COPY=off to go through "
                  "buffers",
                  members_.name(members_.rank()), members_.name(operation.host.awaited()),
                  queue_.machine().router.pull_error()),
      operation.index, operation.host.awaited());
}

// A message that the operation waits for belongs to another call, or never comes because of one:
// the calls differ there or before.
void CallCheck::fail_mismatch(const Pending& pending) {
  tell_known_difference();
  const engine::Operation& operation = pending.operation;
  if (failures_.has_failed_by(operation.index)) return;
  // The sender need not be the awaited member. The message may have been sent to another rank, or
  // to a program that this rank has helped with.
  const auto digest = find_digest();
  const int other = digest ? digest->member : members_.size() == 2 ? 1 - members_.rank() : -1;
  tell_other_call(operation.index, describe_plan(*operation.plan), other);
}

void CallCheck::tell_digest(const Digest& digest) {
  const std::vector<RecordCopy> own = records_of(members_.rank());
  const auto record = std::ranges::find(own, digest.index, &RecordCopy::index);
  tell_other_call(digest.index, record != own.end() ? describe(*record) : "another operation",
                  digest.member);
}

void CallCheck::tell_other_call(std::uint64_t index, const std::string& call, int other) {
  const std::string text = fmt::format("{} called {}, but {} something else, now or before",
                                       members_.name(members_.rank()), call,
                                       other < 0 ? "another rank" : members_.name(other));
  failures_.fail_all(Code::mismatch, difference_text(index, text, members_.differing_settings()),
                     index, other);
}

void CallCheck::tell_difference(const Difference& difference) {
  const std::uint64_t index = difference.own.index;
  const std::string own = describe(difference.own);
  const std::string theirs = describe(difference.theirs);
  const std::string text = fmt::format(
      "{} called {}, {} called {}", members_.name(members_.rank()), own,
      members_.name(difference.other),
      own != theirs ? theirs
      : members_.differing_settings().empty()
          ? "the same, but with other blocks, another algorithm or element size (do counts of "
            "blocks, UNISONO_* settings or user-defined types differ?)"
          : "the same, but with other blocks, another algorithm or element size");
  failures_.fail_all(Code::mismatch, difference_text(index, text, members_.differing_settings()),
                     index, difference.other);
}

}  // namespace unisono::comm
