// SPDX-License-Identifier: BSD-3-Clause
// RankWatch: finds ranks that are lost: processes of this host that have ended or stay stopped, and
// ranks of other hosts that do not answer. It suspects first, and logs that. For ranks that have
// waited, and agents; it limits itself how often it looks. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/settings/settings.hpp"
#include "bootstrap/job_info.hpp"
#include "job/loss/liveness.hpp"
#include "job/loss/losses.hpp"
#include "job/start/multicast_vote.hpp"

namespace unisono::job {

class RankWatch {
 public:
  // `network`: null in a job of one host. All outlive it.
  RankWatch(const std::vector<bootstrap::RankLocation>& members, const Ranks& ranks, Losses& losses,
            MulticastVote& multicast, Events& events, network::Network* network,
            const base::Settings& settings);

  // Looks for deaths and for silent ranks, at most a few times per UNISONO_DETECT_TIMEOUT.
  void look(std::int64_t now_ns);
  // How long a sleeper may sleep before it has to look.
  std::int64_t interval_ns() const;
  // Looks for deaths at once, because of an event.
  void look_for_deaths();
  // Readable while a death is to be found; -1: none will be. To sleep on.
  int deaths() const { return liveness_.descriptor(); }

  // For a rank of this host that some rank has waited for: whether its process is stopped, as seen
  // within a fifth of UNISONO_DETECT_TIMEOUT. If that lasts for the whole of it, the rank counts as
  // silent, and all are informed.
  bool is_stopped(int rank);

  // Whether multicasts still arrive, now.
  void look_at_multicast();
  // Stops waiting for ranks that have not answered for half of that time.
  void give_up_silent(std::int64_t patience_ns);

 private:
  bool mark_dead(std::int64_t now_ns);
  bool look_at_hosts();
  void log_suspicion(int rank, std::int64_t silence_ns);

  const Ranks& ranks_;
  Losses& losses_;
  MulticastVote& multicast_;
  Events& events_;
  network::Network* const network_;
  const base::Settings& settings_;
  std::mutex mutex_;
  Liveness liveness_;
  std::int64_t looked_ns_ = 0;
};

}  // namespace unisono::job
