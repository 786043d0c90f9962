// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/failure_updates.hpp"

#include <algorithm>

#include "job/loss/update_tree.hpp"

namespace unisono::comm {
namespace {

// The number of thorough checks of a waiting rank before it asks. In most cases the awaited message
// comes first, or the update does.
constexpr int kLooksBeforeAsking = 4;

}  // namespace

FailureUpdates::FailureUpdates(const Members& members, const FailurePlace& place)
    : members_(members), job_(members.job()), place_(place) {
  if (!hosts().given()) return;
  own_host_ = hosts().of(members.rank());
  reports_sent_.resize(static_cast<std::size_t>(hosts().hosts()));
}

bool FailureUpdates::lives(int host) const {
  return std::ranges::any_of(hosts().members(host),
                             [this](int member) { return members_.lives(member); });
}

void FailureUpdates::pass_on(const job::Failure& failure) {
  if (!show(failure) || !job::claim_passing_on(*place_.record, failure.index)) return;
  passes_on_ = true;
  tell_neighbours();
}

// The rank of this host that informed them may have died before it was done.
void FailureUpdates::pass_on_again() {
  const auto is_lost = [this](int member) {
    const job::RankState state = members_.state(member);
    return state == job::RankState::dead || state == job::RankState::silent;
  };
  if (!hosts().given() || shown_ == 0) return;
  passes_on_ |= std::ranges::any_of(hosts().members(own_host_), is_lost);
  if (passes_on_) tell_neighbours();
}

// Writes it to this host's copy of the reports for other hosts. False if the copy is as complete
// already.
bool FailureUpdates::show(const job::Failure& failure) {
  const std::uint64_t end = failure.index + 1;
  if (shown_ == job::kMostReports || (shown_ > 0 && end >= shown_end_)) return false;
  const auto held = job_.network()->hold();  // another host may be reading it
  // The text is written with the first report, and stays: later reports only lower the first failed
  // operation.
  if (shown_ == 0) own().text = job::notice_text(failure);
  shown_end_ = shown_ == job::kMostReports - 1 ? 1 : end;
  own().ends[shown_++].store(shown_end_, std::memory_order_release);
  return true;
}

void FailureUpdates::tell_neighbours() {
  const auto lives = [this](int host) { return this->lives(host); };
  for (const int host : job::update_neighbours(own_host_, hosts().hosts(), lives)) {
    tell_host(host);
  }
}

// Sends to all ranks of the host, each with the same words, since it is unknown which of them will
// live. Each report has a word of its own, so that none can overtake another; the first comes with
// the text.
void FailureUpdates::tell_host(int host) {
  int& sent = reports_sent_[static_cast<std::size_t>(host)];
  if (sent == shown_) return;
  const auto put = [this](int member, int report) {
    const bool first = report == 0;
    job_.network()->put(
        {.target = members_.job_rank(member),
         .source = first ? reinterpret_cast<const std::byte*>(&own().text) : nullptr,
         .place = first ? reinterpret_cast<std::byte*>(&own().text) : nullptr,
         .bytes = first ? sizeof own().text : 0,
         .flag = reinterpret_cast<std::uint64_t*>(&own().ends[report]),
         .flag_value = own().ends[report].load(std::memory_order_relaxed)});
  };
  for (const int member : hosts().members(host)) {
    if (!members_.lives(member)) continue;
    if (sent == 0) put(member, 0);
    if (shown_ > 1) put(member, shown_ - 1);
    job_.losses().send_update(members_.job_rank(member));
    job_.network()->confirm(members_.job_rank(member));
  }
  sent = shown_;
}

std::optional<job::Failure> FailureUpdates::earliest() const {
  std::optional<job::Failure> known = job::read_failure(*place_.record);
  if (!hosts().given()) return known;
  // All ranks of a host get a notice, each writing the same.
  const auto held = job_.network()->hold();
  const auto consider = [&known](const job::FailureNotice& notice) {
    const auto reported = job::read_notice(notice);
    if (reported && (!known || reported->index < known->index)) known = reported;
  };
  for (const int member : members_.remote()) consider(place_.notices[member]);
  if (asked_ != 0) {
    const FailureAnswer& answer = place_.answers[members_.rank()];
    if (answer.number.load(std::memory_order_acquire) == asked_) consider(answer.notice);
  }
  return known;
}

void FailureUpdates::ask_now_and_then(int member) {
  if (++looks_ < kLooksBeforeAsking) return;
  looks_ = 0;
  ask(member);
}

void FailureUpdates::ask(int member) {
  FailureAnswer& answer = place_.answers[members_.rank()];
  if (asked_ == 0) {
    const auto ready =
        job_.memory().commit(reinterpret_cast<std::byte*>(&answer) - job_.memory().at(0),
                             sizeof answer, "an answer about a failure");
    if (!ready) return;  // the update comes without it as well
  }
  const bool is_present = members_.lives(member);
  const bool is_answered = asked_ == 0 || answer.number.load(std::memory_order_acquire) == asked_;
  const bool may_be_answered = asked_member_ >= 0 && members_.lives(asked_member_);
  if (!is_present || (!is_answered && may_be_answered)) return;
  asked_member_ = member;
  const job::FailureNotice& theirs = place_.notices[member];  // alike on all hosts
  job_.network()->get({.source = members_.job_rank(member),
                       .offset = static_cast<std::uint64_t>(
                           reinterpret_cast<const std::byte*>(&theirs) - job_.memory().at(0)),
                       .place = reinterpret_cast<std::byte*>(&answer.notice),
                       .bytes = sizeof answer.notice,
                       .flag = reinterpret_cast<std::uint64_t*>(&answer.number),
                       .flag_value = ++asked_});
}

}  // namespace unisono::comm
