// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that goes on without those who are lost: the members that live agree on
// a list (agreement.hpp), and the one that has proposed it has reserved the new segment. Then each
// of the list says whether it has the memory for it (consent.hpp): all go on, or nobody does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "group/communicator.hpp"
#include "group/wait_for.hpp"

namespace unisono::group {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

Status Communicator::begin_shrink() {
  if (shrunk_) {
    return Error{Code::state, fmt::format("rank {}: this communicator has been shrunk already; "
                                          "shrink the one that came of it",
                                          rank_)};
  }
  look_for_failure();
  // Also those before a failed one, which the others may have begun.
  if (!begins_no_more()) {
    fail_all(Code::cancelled, name_rank(rank_) + " called shrink", next_index_);
  }
  told_ = true;
  if (agreement_ != nullptr) return base::success();  // a call that ended by a deadline
  consent_ = std::make_unique<Consent>(job_, job_ranks_, rank_, members());
  auto agreement = std::make_unique<Agreement>(
      job_,
      Agreement::Options{.job_ranks = job_ranks_,
                         .rank = rank_,
                         .table = job_.memory().at(offset_ + layout_.agreement),
                         .payload_bytes = sizeof(Grant),
                         .has_ended = [this](int m) { return has_ended_before_shrink(m); },
                         .offer = [this](const std::vector<int>& m) { return offer_segment(m); }});
  if (const Status joined = agreement->join(); !joined) {
    shrunk_ = true;
    consent_->refuse(rank_);
    return lost_in_shrink(
        {joined.error().code,
         "no member can go on, as this rank cannot take part: " + joined.error().message});
  }
  agreement_ = std::move(agreement);
  return base::success();
}

std::vector<std::byte> Communicator::offer_segment(const std::vector<int>& members) {
  Grant grant;
  if (const auto offset = reserve(job_, static_cast<int>(members.size()))) {
    grant.offset = *offset;
    grant.layout = reinterpret_cast<CommunicatorHeader*>(job_.memory().at(*offset))->layout;
    offered_ = grant;
  }
  std::vector<std::byte> bytes(sizeof grant);
  std::memcpy(bytes.data(), &grant, sizeof grant);
  return bytes;
}

Result<std::optional<std::unique_ptr<Communicator>>> Communicator::step_shrink() {
  using Made = std::optional<std::unique_ptr<Communicator>>;
  if (!decision_) {
    if (const auto by = consent_->refusing()) return refused_in_shrink(*by);
    auto decided = agreement_->step();
    if (!decided) {
      shrunk_ = true;
      consent_->give_up();
      return lost_in_shrink(decided.error());
    }
    if (!*decided) return Made();
    shrunk_ = true;
    UNISONO_TRY(take(std::move(**decided)));
  }
  if (!consent_->await(decision_->members).empty()) {
    // Those that took this rank for lost have dropped what it still lacks.
    if (state_of(rank_) != RankState::present) return excluded_in_shrink();
    return Made();
  }
  UNISONO_ASSIGN(auto made, follow());
  return std::optional(std::move(made));
}

Error Communicator::lost_in_shrink(const Error& why) const {
  return {why.code, fmt::format("rank {}: shrink: {}", rank_, why.message)};
}

Error Communicator::refused_in_shrink(int by) {
  if (!shrunk_) consent_->refuse(by);
  shrunk_ = true;
  return lost_in_shrink(
      {Code::resources, fmt::format("no member can go on, as {} had no memory to take part; it "
                                    "says more",
                                    locate_rank(by))});
}

// Gets the memory that this rank needs of it, and says whether it has.
Status Communicator::take(Agreement::Decision decision) {
  if (std::ranges::count(decision.members, rank_) == 0) {
    return lost_in_shrink(agreement_->excluded());
  }
  Grant grant;
  std::memcpy(&grant, decision.payload.data(), sizeof grant);
  const bool is_unused = offered_.offset >= 0 && offered_.offset != grant.offset;
  if (is_unused) job_.memory().release(offered_.offset, offered_.layout.bytes);
  const int leader = decision.members.front();
  if (grant.offset < 0) {
    return Error{Code::resources,
                 fmt::format("rank {}: shrink: {} could not reserve memory for the new "
                             "communicator; free others or raise UNISONO_SHARED_LIMIT",
                             rank_, name_rank(leader))};
  }
  if (is_remote(leader)) memory_ready_ = adopt(job_, grant.offset, grant.layout);
  memory_ready_ ? consent_->say_yes() : consent_->say_no();
  decision_ = std::move(decision);
  return base::success();
}

// Others may own the new communicator, with this rank in it.
Error Communicator::excluded_in_shrink() {
  const Error why = agreement_->excluded();
  Grant grant;
  std::memcpy(&grant, decision_->payload.data(), sizeof grant);
  if (memory_ready_) {
    build_shrunk(grant)->fail_all(
        why.code, fmt::format("{} was taken for lost by others", name_rank(rank_)), 0);
  }
  return lost_in_shrink(why);
}

// All that live have said whether they have the memory.
Result<std::unique_ptr<Communicator>> Communicator::follow() {
  Grant grant;
  std::memcpy(&grant, decision_->payload.data(), sizeof grant);
  std::unique_ptr<Communicator> made;
  if (memory_ready_) made = build_shrunk(grant);
  const std::vector<int> missing = consent_->missing(decision_->members);
  if (!missing.empty()) return end_shrink_without(missing, std::move(made));
  // If a member is lost by now, it is the next call that says so.
  static_cast<void>(made->agree_on_nic());
  return made;
}

std::unique_ptr<Communicator> Communicator::build_shrunk(const Grant& grant) {
  std::vector<int> job_ranks;
  for (const int member : decision_->members)
    job_ranks.push_back(job_ranks_[static_cast<std::size_t>(member)]);
  const auto place = std::ranges::find(decision_->members, rank_) - decision_->members.begin();
  return std::unique_ptr<Communicator>(new Communicator(
      job_, std::move(job_ranks), static_cast<int>(place), grant.offset, grant.layout, false));
}

// A rank that took one of them for dead, and did not hear it, may own the new communicator.
Error Communicator::end_shrink_without(std::span<const int> missing,
                                       std::unique_ptr<Communicator> made) {
  const bool lacks_memory = consent_->lacks_memory(missing.front());
  const Error why{lacks_memory ? Code::resources : Code::rank_lost,
                  fmt::format("no member can go on, as {} {}{}", locate_rank(missing.front()),
                              lacks_memory ? "had no memory for the new communicator" : "gave up",
                              memory_ready_ ? "; it says more" : "")};
  const auto place = [this](int member) {
    return static_cast<int>(std::ranges::find(decision_->members, member) -
                            decision_->members.begin());
  };
  if (made != nullptr) {
    for (const int member : missing) made->absent_.push_back(place(member));
    made->fail_all(why.code, why.message, 0);
    return lost_in_shrink(why);
  }
  // The leader waits for the farewells of all, also of this rank, to use the segment again.
  Grant grant;
  std::memcpy(&grant, decision_->payload.data(), sizeof grant);
  auto* const farewells =
      reinterpret_cast<std::uint64_t*>(job_.memory().at(grant.offset + grant.layout.farewells));
  job_.network()->put({.target = job_ranks_[static_cast<std::size_t>(decision_->members.front())],
                       .flag = &farewells[place(rank_)],
                       .flag_value = static_cast<std::uint64_t>(Farewell::clean)});
  return lost_in_shrink({why.code, why.message + ": " + memory_ready_.error().message});
}

Result<std::unique_ptr<Communicator>> Communicator::shrink() {
  UNISONO_TRY(begin_shrink());
  const std::int64_t limit_ns = job_.settings().time_ns(base::Setting::timeout);
  const std::int64_t deadline_ns = base::now_ns() + limit_ns;
  using Made = Result<std::optional<std::unique_ptr<Communicator>>>;
  auto made = wait_for([&]() -> Made {
    auto turn = step_shrink();
    if (turn && !*turn && limit_ns > 0 && base::now_ns() > deadline_ns) {
      return late_in_shrink(limit_ns);
    }
    return turn;
  });
  if (!made) return made.error();
  return std::move(**made);
}

Error Communicator::late_in_shrink(std::int64_t limit_ns) const {
  std::vector<std::string> missing;
  const std::vector<int> awaited =
      decision_ ? consent_->awaited(decision_->members) : agreement_->awaited();
  for (const int member : awaited) missing.push_back(locate_rank(member));
  return {Code::timeout,
          fmt::format("rank {}: shrink was not complete after {} (UNISONO_TIMEOUT): it waits for "
                      "{}; every member that lives has to call it",
                      rank_, base::format_time_ns(limit_ns), fmt::join(missing, ", "))};
}

}  // namespace unisono::group
