// SPDX-License-Identifier: BSD-3-Clause
#include "comm/watch/query.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <string>

namespace unisono::comm {

using base::Code;
using base::Error;
using base::Result;

void Query::publish(std::uint64_t value) {
  // The network's thread may be reading it for another host.
  std::unique_lock<std::mutex> held;
  if (!members_.on_one_host()) held = members_.job().network()->hold();
  segment_.records()[members_.rank()].published.store(value, std::memory_order_release);
}

QueryAnswer& Query::answer(int member) const {
  auto* const answers = reinterpret_cast<QueryAnswer*>(segment_.at(segment_.layout().answers));
  return answers[std::int64_t{members_.rank()} * members_.size() + member];
}

// Answers to earlier requests may have been read before this query began.
base::Status Query::begin() {
  asked_.resize(members_.remote().size());
  for (Asked& asked : asked_) asked.needed = asked.last + 1;
  if (members_.on_one_host()) return base::success();
  const std::int64_t row = members_.size() * static_cast<std::int64_t>(sizeof(QueryAnswer));
  return members_.job().memory().commit(
      segment_.offset() + segment_.layout().answers + members_.rank() * row, row,
      "the answers to a query");
}

void Query::ask() {
  for (std::size_t i = 0; i < asked_.size(); ++i) ask(members_.remote()[i], asked_[i]);
}

// A member is awaited until it has answered, so that its silence is noticed.
void Query::ask(int member, Asked& asked) {
  job::Job& job = members_.job();
  QueryAnswer& answer = this->answer(member);
  const std::uint64_t answered = answer.number.load(std::memory_order_acquire);
  if (answered == asked.needed) return;
  if (answered == asked.last) {
    asked.last = asked.needed;
    const auto offset =
        reinterpret_cast<std::byte*>(&segment_.records()[member].published) - job.memory().at(0);
    job.network()->get({.source = members_.job_rank(member),
                        .offset = static_cast<std::uint64_t>(offset),
                        .place = reinterpret_cast<std::byte*>(&answer.value),
                        .bytes = sizeof answer.value,
                        .flag = reinterpret_cast<std::uint64_t*>(&answer.number),
                        .flag_value = asked.last});
  }
  job.network()->awaits(members_.job_rank(member));
}

// While an earlier request has no answer, there is no further one.
base::Status Query::ask_for_sign(int member) {
  const auto found = std::ranges::find(members_.remote(), member);
  if (found == members_.remote().end() || !members_.lives(member)) return base::success();
  UNISONO_TRY(begin());
  ask(member, asked_[static_cast<std::size_t>(found - members_.remote().begin())]);
  return base::success();
}

std::optional<Error> Query::lost_member() const {
  for (int r = 0; r < members_.size(); ++r) {
    if (members_.lives(r)) continue;
    return Error{Code::rank_lost, fmt::format("rank {}: query: {}", members_.rank(),
                                              members_.describe_loss(members_.cause_of_loss(r)))};
  }
  return std::nullopt;
}

Result<std::optional<bool>> Query::step(Comparison how, std::uint64_t value) {
  if (const auto lost = lost_member()) return *lost;
  ask();
  bool holds = true;
  for (const int r : members_.here()) {
    // Like a rank of another host that does not answer: until it is continued, or lost.
    if (members_.job().watch().is_stopped(members_.job_rank(r))) return std::optional<bool>();
    holds &= compare(segment_.records()[r].published.load(std::memory_order_acquire), how, value);
  }
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const QueryAnswer& answer = this->answer(members_.remote()[i]);
    if (answer.number.load(std::memory_order_acquire) != asked_[i].needed) {
      return std::optional<bool>();
    }
    holds &= compare(answer.value.load(std::memory_order_relaxed), how, value);
  }
  return std::optional(holds);
}

Error Query::unanswered(const EarlyEnd& end) const {
  std::vector<std::string> missing;
  for (const int r : members_.here()) {
    if (members_.job().watch().is_stopped(members_.job_rank(r)))
      missing.push_back(members_.locate(r));
  }
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const int r = members_.remote()[i];
    const std::uint64_t answered = answer(r).number.load(std::memory_order_acquire);
    if (answered != asked_[i].needed) missing.push_back(members_.locate(r));
  }
  return end.error(fmt::format("rank {}: query", members_.rank()),
                   fmt::format("{} {} not answered", fmt::join(missing, ", "),
                               missing.size() == 1 ? "has" : "have"));
}

}  // namespace unisono::comm
