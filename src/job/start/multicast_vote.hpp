// SPDX-License-Identifier: BSD-3-Clause
// MulticastVote: whether the network carries multicast between the hosts of a job. The first rank
// of each host tries, and sends its vote to rank 0. That one decides: all use multicast or none. If
// some host has a second carrier (IP multicast besides verbs), all try once more. A job that
// insists on multicast tries the last carrier several times. If the network later stops carrying
// it, the job goes on by unicast (reliable/group), and rank 0 logs that once. watch() is for one
// thread at a time.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "job/ranks.hpp"
#include "network/network.hpp"

namespace unisono::job {

class StartUp;

class MulticastVote {
 public:
  // `network`: null in a job of one host. All outlive it.
  MulticastVote(const Ranks& ranks, JobHeader& header, network::Network* network)
      : ranks_(ranks), header_(header), network_(network) {}

  // `wish`: the setting; nullopt: nobody tries.
  base::Status decide(StartUp& start, std::optional<base::Toggle> wish);
  // After the start: whether multicasts still arrive. It needs a network.
  void watch();

 private:
  std::string probe();
  base::Status collect_votes(StartUp& start, bool may_retry);
  CarrierVote vote_of(int first) const;
  void tell_loss_of_multicast();
  void log_loss_of_multicast();

  const Ranks& ranks_;
  JobHeader& header_;
  network::Network* const network_;
  std::uint64_t round_ = 0;  // of a carrier that is tried
  bool has_warned_ = false;
};

}  // namespace unisono::job
