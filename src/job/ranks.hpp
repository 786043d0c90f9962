// SPDX-License-Identifier: BSD-3-Clause
// Ranks: who is who in a job: this rank, the number of ranks, their processes and hosts, and the
// state of each. Immutable but for the states, which lie in shared memory. Any thread, once
// attach() has been called; before that, any thread may ask has_tables().
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/job_info.hpp"
#include "job/tables.hpp"
#include "network/hosts.hpp"
#include "reliable/group/acknowledgement.hpp"

namespace unisono::job {

class Ranks {
 public:
  explicit Ranks(const bootstrap::JobInfo& info);

  int own() const { return own_; }
  int count() const { return static_cast<int>(processes_.size()); }
  const network::Hosts& hosts() const { return hosts_; }
  // Whether this rank sets up the shared memory of its host, and speaks for it at the start.
  bool is_first_here() const { return own_ == hosts_.first_here(); }
  const std::vector<pid_t>& processes() const { return processes_; }

  // The tables are there: they have an entry for each rank.
  void attach(RankHeader* entries) { entries_ = entries; }
  bool has_tables() const { return entries_ != nullptr; }
  RankHeader& entry(int rank) const { return entries_[rank]; }

  RankState state(int rank) const {
    return static_cast<RankState>(entries_[rank].state.load(std::memory_order_acquire));
  }
  // The state of this rank.
  void enter() const { set_own(RankState::present); }
  void leave() const { set_own(RankState::left); }
  // False if the rank had left, or was known to be gone. Others have to learn of it (Losses).
  bool mark_gone(int rank, RankState how) const;

  bool is_lost(int rank) const {
    return state(rank) == RankState::dead || state(rank) == RankState::silent;
  }
  // A rank of another host that will answer no more.
  bool has_gone(int rank) const {
    return !hosts_.is_here(rank) && state(rank) != RankState::present;
  }
  // How it has ceased to answer; nullopt unless has_gone().
  std::optional<reliable::Departure> departure(int rank) const;
  bool has_living(int host) const;
  // "rank 3", "ranks 3, 5": those that have not entered yet.
  std::string absent() const;

  base::Error cannot_start_without(int rank, std::string_view how) const;
  // "rank 3 (host 10.0.0.2), rank 5 (its process is stopped)": those of `ranks` that have not done
  // their part.
  template <class Range, class HasDone>
  std::string names_of_late(const Range& ranks, const HasDone& has_done) const {
    std::string names;
    for (const int rank : ranks) {
      if (has_done(rank)) continue;
      if (!names.empty()) names += ", ";
      names += name_of_late(rank);
    }
    return names;
  }

 private:
  std::string name_of_late(int rank) const;
  std::string note_of_stop(int rank) const;
  void set_own(RankState state) const {
    entries_[own_].state.store(static_cast<std::uint64_t>(state), std::memory_order_release);
  }

  int own_;
  std::vector<pid_t> processes_;
  network::Hosts hosts_;
  RankHeader* entries_ = nullptr;
};

// "its process ended without finalize", ...: for messages.
const char* how_it_went(RankState state);

}  // namespace unisono::job
