// SPDX-License-Identifier: BSD-3-Clause
#include "job/ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "job/loss/liveness.hpp"

namespace unisono::job {

Ranks::Ranks(const bootstrap::JobInfo& info) : own_(info.rank), hosts_(info) {
  for (const bootstrap::RankLocation& member : info.members) processes_.push_back(member.pid);
}

// One of the ranks that notice a death marks it; a rank that left in good order stays "left".
bool Ranks::mark_gone(int rank, RankState how) const {
  for (const RankState before : {RankState::absent, RankState::present}) {
    auto expected = static_cast<std::uint64_t>(before);
    if (entries_[rank].state.compare_exchange_strong(expected, static_cast<std::uint64_t>(how),
                                                     std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

std::optional<reliable::Departure> Ranks::departure(int rank) const {
  if (!has_gone(rank)) return std::nullopt;
  return state(rank) == RankState::left ? reliable::Departure::left : reliable::Departure::lost;
}

bool Ranks::has_living(int host) const {
  for (int r = 0; r < count(); ++r) {
    if (hosts_.of(r) == host && state(r) == RankState::present) return true;
  }
  return false;
}

std::string Ranks::absent() const {
  std::vector<std::string> absent;
  for (int r = 0; r < count(); ++r) {
    if (state(r) != RankState::absent) continue;
    const std::string note = note_of_stop(r);
    absent.push_back(std::to_string(r) + (note.empty() ? "" : " (" + note + ")"));
  }
  return fmt::format("rank{} {}", absent.size() == 1 ? "" : "s", fmt::join(absent, ", "));
}

std::string Ranks::name_of_late(int rank) const {
  const std::string note = note_of_stop(rank);
  if (note.empty()) return hosts_.name_of(rank);
  return fmt::format("rank {} ({})", rank, hosts_.with_place(rank, note));
}

// Empty if it is not, or is on another host.
std::string Ranks::note_of_stop(int rank) const {
  const pid_t process = processes_[static_cast<std::size_t>(rank)];
  if (process == 0 || !process_is_stopped(process)) return {};
  return fmt::format("its process {} is stopped", process);
}

base::Error Ranks::cannot_start_without(int rank, std::string_view how) const {
  return {base::Code::rank_lost, fmt::format("rank {}: rank {} is lost ({}): the job cannot start",
                                             own_, rank, hosts_.with_place(rank, how))};
}

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

}  // namespace unisono::job
