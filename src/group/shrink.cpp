// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that goes on without those who are lost: the members that live agree on
// a list (agreement.hpp), and the one that has proposed it has reserved the new segment.
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
  auto agreement = std::make_unique<Agreement>(
      job_,
      Agreement::Options{.job_ranks = job_ranks_,
                         .rank = rank_,
                         .table = job_.memory().at(offset_ + layout_.agreement),
                         .payload_bytes = sizeof(Grant),
                         .offer = [this](const std::vector<int>& m) { return offer_segment(m); }});
  UNISONO_TRY(agreement->join());
  agreement_ = std::move(agreement);
  return base::success();
}

std::vector<std::byte> Communicator::offer_segment(const std::vector<int>& members) {
  Grant grant;
  if (const auto offset = reserve(job_, static_cast<int>(members.size()))) {
    grant.offset = *offset;
    grant.layout = reinterpret_cast<CommunicatorHeader*>(job_.memory().at(*offset))->layout;
  }
  std::vector<std::byte> bytes(sizeof grant);
  std::memcpy(bytes.data(), &grant, sizeof grant);
  return bytes;
}

Result<std::optional<std::unique_ptr<Communicator>>> Communicator::step_shrink() {
  auto decided = agreement_->step();
  if (!decided) return lost_in_shrink(decided.error());
  if (!*decided) return std::optional<std::unique_ptr<Communicator>>();
  shrunk_ = true;
  UNISONO_ASSIGN(auto made, follow(**decided));
  return std::optional(std::move(made));
}

Error Communicator::lost_in_shrink(const Error& why) const {
  return {why.code, fmt::format("rank {}: shrink: {}", rank_, why.message)};
}

Result<std::unique_ptr<Communicator>> Communicator::follow(const Agreement::Decision& decision) {
  const std::vector<int>& members = decision.members;
  const auto place = std::ranges::find(members, rank_);
  if (place == members.end()) return lost_in_shrink(agreement_->excluded());
  Grant grant;
  std::memcpy(&grant, decision.payload.data(), sizeof grant);
  if (grant.offset < 0) {
    return Error{Code::resources,
                 fmt::format("rank {}: shrink: {} could not reserve memory for the new "
                             "communicator; free others or raise UNISONO_SHARED_LIMIT",
                             rank_, name_rank(members.front()))};
  }
  std::vector<int> job_ranks;
  for (const int member : members)
    job_ranks.push_back(job_ranks_[static_cast<std::size_t>(member)]);
  if (is_remote(members.front())) UNISONO_TRY(adopt(job_, grant.offset, grant.layout));
  std::unique_ptr<Communicator> made(new Communicator(job_, std::move(job_ranks),
                                                      static_cast<int>(place - members.begin()),
                                                      grant.offset, grant.layout, false));
  // If a member is lost by now, it is the next call that says so.
  static_cast<void>(made->agree_on_nic());
  return made;
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
  for (const int member : agreement_->awaited()) missing.push_back(locate_rank(member));
  return {Code::timeout,
          fmt::format("rank {}: shrink was not complete after {} (UNISONO_TIMEOUT): it waits for "
                      "{}; every member that lives has to call it",
                      rank_, base::format_time_ns(limit_ns), fmt::join(missing, ", "))};
}

}  // namespace unisono::group
