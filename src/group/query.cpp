// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that asks all members for a word, without their taking part (query.hpp).
#include "group/query.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "group/communicator.hpp"
#include "group/wait_for.hpp"

namespace unisono::group {

using base::Code;
using base::Error;
using base::Result;

void Communicator::publish(std::uint64_t value) {
  // The network's thread may be reading it for another host.
  std::unique_lock<std::mutex> held;
  if (machine_.network != nullptr) held = job_.network()->hold();
  members()[rank_].published.store(value, std::memory_order_release);
}

QueryAnswer& Communicator::query_answer(int member) const {
  return reinterpret_cast<QueryAnswer*>(
      job_.memory().at(offset_ + layout_.answers))[std::int64_t{rank_} * size() + member];
}

// What was asked for before may have been read before.
base::Status Communicator::begin_query() {
  take_back();
  query_.members.resize(remote_.size());
  for (Query::Member& member : query_.members) member.needed = member.asked + 1;
  if (remote_.empty()) return base::success();
  const std::int64_t row = size() * static_cast<std::int64_t>(sizeof(QueryAnswer));
  return job_.memory().commit(offset_ + layout_.answers + rank_ * row, row,
                              "the answers to a query");
}

// A member at a time is asked once; and awaited, so that its silence is noticed.
void Communicator::ask_for_words() {
  for (std::size_t i = 0; i < remote_.size(); ++i) {
    Query::Member& member = query_.members[i];
    const int rank = remote_[i];
    const int job_rank = job_ranks_[static_cast<std::size_t>(rank)];
    QueryAnswer& answer = query_answer(rank);
    const std::uint64_t answered = answer.number.load(std::memory_order_acquire);
    if (answered == member.needed) continue;
    if (answered == member.asked) {
      member.asked = member.needed;
      const auto offset =
          reinterpret_cast<std::byte*>(&members()[rank].published) - job_.memory().at(0);
      machine_.network->get({.source = job_rank,
                             .offset = static_cast<std::uint64_t>(offset),
                             .place = reinterpret_cast<std::byte*>(&answer.value),
                             .bytes = sizeof answer.value,
                             .flag = reinterpret_cast<std::uint64_t*>(&answer.number),
                             .flag_value = member.asked});
    }
    machine_.network->awaits(job_rank);
  }
}

std::optional<Error> Communicator::lost_member() const {
  for (int r = 0; r < size(); ++r) {
    if (state_of(r) == RankState::present) continue;
    return Error{Code::rank_lost,
                 fmt::format("rank {}: query: {}", rank_, describe_loss(cause_of_loss(r)))};
  }
  return std::nullopt;
}

Result<std::optional<bool>> Communicator::step_query(Comparison how, std::uint64_t value) {
  if (const auto lost = lost_member()) return *lost;
  ask_for_words();
  bool holds = true;
  for (int r = 0; r < size(); ++r) {
    if (!is_remote(r)) {
      // As one of another host does not answer: until it is continued, or lost.
      if (job_.is_stopped(job_ranks_[static_cast<std::size_t>(r)])) return std::optional<bool>();
      holds &= compare(members()[r].published.load(std::memory_order_acquire), how, value);
    }
  }
  for (std::size_t i = 0; i < remote_.size(); ++i) {
    const QueryAnswer& answer = query_answer(remote_[i]);
    if (answer.number.load(std::memory_order_acquire) != query_.members[i].needed) {
      return std::optional<bool>();
    }
    holds &= compare(answer.value.load(std::memory_order_relaxed), how, value);
  }
  return std::optional(holds);
}

Result<bool> Communicator::query(Comparison how, std::uint64_t value) {
  UNISONO_TRY(begin_query());
  job_.watch(base::now_ns());
  const auto answer = wait_for([&] { return step_query(how, value); });
  lend(false);  // what is under way goes on
  if (!answer) return answer.error();
  return **answer;
}

}  // namespace unisono::group
