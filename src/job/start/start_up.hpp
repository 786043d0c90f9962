// SPDX-License-Identifier: BSD-3-Clause
// StartUp: the start of a job as all its ranks agree on it: its deadline, the error that one rank
// reports to all, and the confirmation that all ranks have what they need. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/job_info.hpp"
#include "bootstrap/start_connections.hpp"
#include "job/loss/losses.hpp"
#include "job/ranks.hpp"
#include "memory/job_memory.hpp"
#include "network/network.hpp"

namespace unisono::job {

class StartUp {
 public:
  // Begins the time of the start. `work`: what a waiting rank does in each turn. `network`: null in
  // a job of one host. `connections`: to the rendezvous; null: there are none. All outlive it.
  StartUp(const Ranks& ranks, JobHeader& header, Losses& losses, network::Network* network,
          bootstrap::StartConnections* connections, const base::Settings& settings,
          std::function<void()> work);

  const Ranks& ranks() const { return ranks_; }
  JobHeader& header() const { return header_; }
  network::Network* network() const { return network_; }
  const base::Settings& settings() const { return settings_; }

  // Waits until the condition holds. Errors: rank_lost, at once; timeout, at the deadline of the
  // start, with the text of `missing`.
  base::Status await(const std::function<bool()>& condition,
                     const std::function<std::string()>& missing);
  // Until all ranks have entered.
  base::Status await_ranks();

  // The offset of the world's segment, which the host's first rank publishes and the others wait
  // for.
  void publish_world(std::int64_t offset);
  base::Result<std::int64_t> await_world();
  // This rank has all that it needs (comm/start.hpp): returns when that is so for all.
  base::Status confirm();
  // Tells the others that this rank cannot start; the error for its caller.
  base::Error fail(const base::Error& why);
  bool has_failed() const { return has_failed_; }
  // Does a part of the start. The others hear of an error that it returns, and of an exception,
  // which becomes an error.
  base::Status tell_errors_of(const std::function<base::Status()>& part);

 private:
  base::Error report(const base::Error& why);
  void hear();
  void hear_now();
  std::optional<base::Error> told_failure() const;
  base::Error told(const base::Error& why) const;
  std::optional<base::Error> reported_failure() const;
  std::optional<base::Error> cannot_wait(const std::function<std::string()>& missing);
  base::Error lost(const Losses::Loss& loss) const;
  void tell_loss();
  void send_failure(const base::Error& why);
  void settle();
  void confirm_host();
  base::Status confirm_for_all();

  const Ranks& ranks_;
  JobHeader& header_;
  Losses& losses_;
  network::Network* const network_;
  bootstrap::StartConnections* const connections_;
  const base::Settings& settings_;
  const std::function<void()> work_;
  const std::int64_t deadline_ns_;
  std::int64_t heard_ns_ = 0;
  bool has_failed_ = false;
};

// For a rank that fails before it has a StartUp: tells the others, by the header of the job's
// memory and by its connections.
void tell_before_start(memory::JobMemory& memory, const bootstrap::JobInfo& info,
                       const base::Error& why);

}  // namespace unisono::job
