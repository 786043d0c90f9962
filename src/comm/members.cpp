// SPDX-License-Identifier: BSD-3-Clause
#include "comm/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace unisono::comm {

Members::Members(job::Job& job, std::vector<int> job_ranks, int rank)
    : job_(job), job_ranks_(std::move(job_ranks)), rank_(rank) {
  std::vector<int> labels;
  for (int r = 0; r < size(); ++r) {
    labels.push_back(job_.hosts().of(job_rank(r)));
    if (is_remote(r)) remote_.push_back(r);
  }
  hosts_ = topology::HostMap::of_labels(labels);
}

std::vector<int> Members::job_ranks_of(std::span<const int> ranks) const {
  std::vector<int> job_ranks;
  for (const int r : ranks) job_ranks.push_back(job_rank(r));
  return job_ranks;
}

std::vector<std::vector<int>> Members::remote_by_host() const {
  std::vector<std::vector<int>> remote;
  if (!hosts_.given()) return remote;
  for (int host = 0; host < hosts_.hosts(); ++host) {
    if (host == hosts_.of(rank_)) continue;
    const auto there = hosts_.members(host);
    remote.emplace_back(there.begin(), there.end());
  }
  return remote;
}

std::vector<int> Members::one_of_each_remote_host() const {
  std::vector<int> targets;
  for (const std::vector<int>& there : remote_by_host()) {
    const auto living = std::ranges::find_if(there, [this](int r) { return lives(r); });
    if (living != there.end()) targets.push_back(job_rank(*living));
  }
  return targets;
}

network::Router Members::router() const {
  const network::Router router(job_.transport(), job_.network(), job_.hosts().map(),
                               job_.ranks().own());
  return on_one_host() ? router.within_host() : router;
}

// Multicasts reach the first rank of each host. So all of these have to be members: otherwise a
// multicast would reach a host without memory of this communicator.
std::vector<bool> Members::multicast_group() const {
  if (on_one_host() || !job_.network()->multicasts()) return {};
  const auto firsts = job_.hosts().firsts();
  std::vector<bool> group;
  for (const int job_rank : job_ranks_) {
    group.push_back(std::ranges::binary_search(firsts, job_rank));
  }
  if (std::cmp_less(std::ranges::count(group, true), firsts.size())) return {};
  return group;
}

std::string Members::name(int rank) const {
  if (job_rank(rank) == rank) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (rank {} of the job)", rank, job_rank(rank));
}

std::string Members::locate(int rank) const {
  const std::string place = job_.hosts().place_of(job_rank(rank));
  if (place.empty()) return name(rank);
  if (job_rank(rank) == rank) return fmt::format("rank {} ({})", rank, place);
  return fmt::format("rank {} (rank {} of the job, {})", rank, job_rank(rank), place);
}

std::string Members::describe_loss(int rank) const {
  std::string how;
  if (state(rank) == job::RankState::silent && job_.network() != nullptr) {
    how = job_.losses().reason(job_rank(rank));
    if (how.empty()) how = job_.network()->why_lost(job_rank(rank));
  }
  if (how.empty()) how = job::how_it_went(state(rank));
  return fmt::format("{} is lost ({})", name(rank), job_.hosts().with_place(job_rank(rank), how));
}

int Members::cause_of_loss(int rank) const {
  if (state(rank) != job::RankState::left) return rank;
  for (int r = 0; r < size(); ++r) {
    const job::RankState other = state(r);
    if (other != job::RankState::present && other != job::RankState::left) return r;
  }
  return rank;
}

}  // namespace unisono::comm
