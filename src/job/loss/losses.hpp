// SPDX-License-Identifier: BSD-3-Clause
// Losses: the ranks that are lost, and how all hosts learn of them. A rank that finds a loss marks
// it in its host's memory and passes it on along the tree of hosts (update_tree.hpp, decision 13).
// Hosts that receive it do the same, once each. The first reason that a rank finds for a loss goes
// along, in the same message. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/events.hpp"
#include "job/ranks.hpp"
#include "network/network.hpp"

namespace unisono::job {

class Losses {
 public:
  struct Loss {
    int rank;
    RankState how;
    bool operator==(const Loss&) const = default;
  };

  // `network`: null in a job of one host. All outlive it.
  Losses(const Ranks& ranks, JobHeader& header, Events& events, network::Network* network)
      : ranks_(ranks), header_(header), events_(events), network_(network) {}

  // False if the rank was known to be gone. Informs the other hosts; the caller raises the event
  // afterwards. `why`: in words for all ranks; empty: nothing is known beyond `how`.
  bool mark_gone(int rank, RankState how, const std::string& why = {});
  // Why that rank is lost, in the words of the rank that found it; empty: nobody has said.
  std::string reason(int rank) const;
  // The rank that was lost first.
  std::optional<Loss> first() const;
  // Tells the other hosts of it once, whether or not their tables are there; for the start. The
  // caller settles the network.
  void tell_first() const;
  // If the rank is gone, reports it once more to the neighbours of this host, and to the rank.
  void pass_on(int rank);
  // Drops the packets that are kept for a rank of another host that is gone.
  void abandon(int rank);
  // Informs the ranks of other hosts that this one has left.
  void tell_leave();

  // Makes a rank of another host check for updates that were put there before.
  void send_update(int rank);
  // Looks for updates that other hosts have put here.
  void take_updates();

 private:
  std::vector<int> neighbours() const;
  int reporter_of(int rank) const;
  void note_reason(int rank, RankState how, const std::string& why);
  void record_first(int rank, RankState how);
  void pass_on_once(int rank);
  void catch_up_neighbours(int rank, const std::vector<int>& neighbours);
  void pass_on_to(int host, int rank);
  void take_reports();
  // With its reason, if that is known.
  void put_loss(int target, int rank);
  void put_state(int target, int rank, RankState state);

  const Ranks& ranks_;
  JobHeader& header_;
  Events& events_;
  network::Network* const network_;
};

}  // namespace unisono::job
