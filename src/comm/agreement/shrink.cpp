// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/shrink.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/text.hpp"

namespace unisono::comm {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

Shrink::Shrink(const Members& members, const Segment& segment, const Ends& ends)
    : members_(members),
      ends_(ends),
      reservations_(members, segment),
      consent_(members, segment.records()),
      agreement_(members,
                 {.table = segment.at(segment.layout().agreement),
                  .payload_bytes = sizeof(Grant),
                  .has_ended =
                      [this](int member) {
                        const auto end = ends_.of(member);
                        return end && !end->has_shrunk;
                      },
                  .make_payload = [this](const std::vector<int>& m) { return make_grant(m); }}) {}

Status Shrink::join() {
  const Status joined = agreement_.join();
  if (joined) return joined;
  is_over_ = true;
  consent_.refuse(members_.rank());
  return error({joined.error().code,
                "no member can go on, as this rank cannot take part: " + joined.error().message});
}

std::vector<std::byte> Shrink::make_grant(const std::vector<int>& members) {
  Grant grant;
  const auto reserved = Segment::reserve(members_.job(), members_.job_ranks_of(members),
                                         &reservations_.own(), Reservations::kOfShrink);
  if (reserved) grant = *reserved;
  std::vector<std::byte> bytes(sizeof grant);
  std::memcpy(bytes.data(), &grant, sizeof grant);
  return bytes;
}

Result<std::optional<Shrink::Outcome>> Shrink::step() {
  if (!decision_) {
    if (const auto by = consent_.refusing()) return refused(*by);
    auto decided = agreement_.step();
    if (!decided) {
      is_over_ = true;
      consent_.give_up();
      return error(decided.error());
    }
    if (!*decided) return std::optional<Outcome>();
    is_over_ = true;
    UNISONO_TRY(take(std::move(**decided)));
  }
  if (!consent_.await(decision_->members).empty()) {
    // Members that took this rank for lost have dropped the packets that it still lacks.
    if (!members_.lives(members_.rank())) return excluded();
    return std::optional<Outcome>();
  }
  UNISONO_ASSIGN(Outcome outcome, follow());
  return std::optional(std::move(outcome));
}

Error Shrink::error(const Error& why) const {
  return {why.code, fmt::format("rank {}: shrink: {}", members_.rank(), why.message)};
}

Error Shrink::refused(int by) {
  if (!is_over_) consent_.refuse(by);
  is_over_ = true;
  return error({Code::resources,
                fmt::format("no member can go on, as {} had no memory to take part; it says more",
                            members_.locate(by))});
}

Grant Shrink::grant() const {
  Grant grant;
  std::memcpy(&grant, decision_->payload.data(), sizeof grant);
  return grant;
}

void Shrink::give_back_unused() const {
  if (decision_) reservations_.give_back_unused(grant().offset);
}

// Allocates the memory that this rank needs, and reports whether it has it.
Status Shrink::take(Agreement::Decision decision) {
  if (std::ranges::count(decision.members, members_.rank()) == 0) {
    return error(agreement_.excluded());
  }
  decision_ = std::move(decision);
  const Grant given = grant();
  const int leader = decision_->members.front();
  const bool is_used = reservations_.own().offset.load(std::memory_order_relaxed) == given.offset;
  is_used ? reservations_.hand_over() : reservations_.release_own();
  give_back_unused();
  if (given.offset < 0) {
    decision_.reset();
    return error({Code::resources,
                  fmt::format("{} could not reserve memory for the new communicator; free others "
                              "or raise UNISONO_SHARED_LIMIT",
                              members_.name(leader))});
  }
  if (members_.is_remote(leader)) memory_ready_ = Segment::adopt(members_.job(), given);
  memory_ready_ ? consent_.say_yes() : consent_.say_no();
  return base::success();
}

// Others may own the new communicator, with this rank in it.
Error Shrink::excluded() {
  const Error why = agreement_.excluded();
  if (memory_ready_) {
    left_behind_ = Outcome{.members = decision_->members,
                           .grant = grant(),
                           .absent = {},
                           .failure = Error{why.code, fmt::format("{} was taken for lost by others",
                                                                  members_.name(members_.rank()))}};
  }
  return error(why);
}

// All that live have said whether they have the memory.
Result<Shrink::Outcome> Shrink::follow() {
  const std::vector<int> missing = consent_.missing(decision_->members);
  if (!missing.empty()) return end_without(missing);
  return Outcome{.members = decision_->members, .grant = grant(), .absent = {}, .failure = {}};
}

int Shrink::place_of(int member) const {
  return static_cast<int>(std::ranges::find(decision_->members, member) -
                          decision_->members.begin());
}

// A rank that took one of them for dead, and did not receive the refusal, may own the new
// communicator.
Error Shrink::end_without(std::span<const int> missing) {
  const bool lacks_memory = consent_.lacks_memory(missing.front());
  const Error why{lacks_memory ? Code::resources : Code::rank_lost,
                  fmt::format("no member can go on, as {} {}{}", members_.locate(missing.front()),
                              lacks_memory ? "had no memory for the new communicator" : "gave up",
                              memory_ready_ ? "; it says more" : "")};
  if (memory_ready_) {
    left_behind_ =
        Outcome{.members = decision_->members, .grant = grant(), .absent = {}, .failure = why};
    for (const int member : missing) left_behind_->absent.push_back(place_of(member));
    return error(why);
  }
  // The leader waits for the leave records of all, also of this rank, before it reuses the segment.
  const Grant given = grant();
  job::Job& job = members_.job();
  auto* const leave_records =
      reinterpret_cast<std::uint64_t*>(job.memory().at(given.offset + given.layout.leave_records));
  job.network()->put({.target = members_.job_rank(decision_->members.front()),
                      .flag = &leave_records[place_of(members_.rank())],
                      .flag_value = static_cast<std::uint64_t>(job::LeaveRecord::clean)});
  return error({why.code, why.message + ": " + memory_ready_.error().message});
}

Error Shrink::incomplete(const EarlyEnd& end) const {
  std::vector<std::string> missing;
  const std::vector<int> awaited =
      decision_ ? consent_.awaited(decision_->members) : agreement_.awaited();
  for (const int member : awaited) missing.push_back(members_.locate(member));
  return end.error(fmt::format("rank {}: shrink", members_.rank()),
                   fmt::format("it waits for {}; every member that lives has to call it",
                               fmt::join(missing, ", ")));
}

}  // namespace unisono::comm
