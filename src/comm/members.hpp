// SPDX-License-Identifier: BSD-3-Clause
// Members: the ranks of a communicator, in its order: where each one is, whether it lives, and how
// a message names it. A member is numbered by its rank in the communicator; its number in the job
// is its job rank. Immutable, but for the states, which the job knows. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "job/job.hpp"
#include "network/router.hpp"
#include "topology/host_map.hpp"

namespace unisono::comm {

class Members {
 public:
  // `rank` is this rank's number among them.
  Members(job::Job& job, std::vector<int> job_ranks, int rank);
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  job::Job& job() const { return job_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(job_ranks_.size()); }
  const std::vector<int>& job_ranks() const { return job_ranks_; }
  int job_rank(int rank) const { return job_ranks_[static_cast<std::size_t>(rank)]; }
  std::vector<int> job_ranks_of(std::span<const int> ranks) const;
  job::RankState state(int rank) const { return job_.ranks().state(job_rank(rank)); }
  bool lives(int rank) const { return state(rank) == job::RankState::present; }

  // Members on this host, this rank among them, ascending.
  std::span<const std::int32_t> here() const { return hosts_.members(hosts_.of(rank_)); }
  // Members on other hosts, ascending.
  const std::vector<int>& remote() const { return remote_; }
  bool on_one_host() const { return remote_.empty(); }
  bool is_remote(int rank) const { return !job_.hosts().is_here(job_rank(rank)); }
  // Not given if all members are on one host.
  const topology::HostMap& hosts() const { return hosts_; }
  // The members of each other host, in the order of hosts.
  std::vector<std::vector<int>> remote_by_host() const;
  // One living member of each other host, as job ranks: to write a word into the memory of all.
  std::vector<int> one_of_each_remote_host() const;
  // The way to all members, by job rank.
  network::Router router() const;
  // By member, whether it receives multicasts; empty if the members cannot use multicast.
  std::vector<bool> multicast_group() const;

  // "rank 3", with the job's number if that differs.
  std::string name(int rank) const;
  // The same, with the host if the job has several.
  std::string locate(int rank) const;
  // "rank 3 is lost (host 10.0.0.2; its process ended without finalize)".
  std::string describe_loss(int rank) const;
  // Settings that differ between the ranks of the job, though they should be alike; empty: none.
  const std::string& differing_settings() const { return job_.differing_settings; }
  // The member whose loss explains that `rank` has left: another one that is dead, or `rank`
  // itself.
  int cause_of_loss(int rank) const;

 private:
  job::Job& job_;
  std::vector<int> job_ranks_;
  int rank_;
  std::vector<int> remote_;
  topology::HostMap hosts_;
};

}  // namespace unisono::comm
