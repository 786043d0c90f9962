// SPDX-License-Identifier: BSD-3-Clause
// JobInfo: what a rank knows of its job when the bootstrap has ended: its number, the ranks and
// their hosts, the memory file of its host, and open datagrams to other hosts. Plain data; one
// owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/settings/settings.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

// One rank of the job.
struct Member {
  pid_t pid = 0;  // in this process's pid namespace, as the kernel reports it for the rank's
                  // connection; 0: on another host
  int host = 0;   // hosts are numbered by their lowest rank, in the order of ranks
  // The host's address on the network that the job uses; nullopt in a job of one host.
  std::optional<transport::IpAddress> address{};
};

// The lowest rank of each host, ascending.
inline std::vector<int> first_ranks(std::span<const Member> members) {
  std::vector<int> firsts;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (std::cmp_equal(members[r].host, firsts.size())) firsts.push_back(static_cast<int>(r));
  }
  return firsts;
}

struct JobInfo {
  int rank = 0;
  int ranks = 1;
  int hosts = 1;
  std::string job;          // name for people and logs; unique per job on this machine
  base::Descriptor memory;  // this host's memory file: a sparse memfd, sealed against shrinking
  std::uint64_t memory_bytes = 0;  // its length, the same on all hosts
  std::vector<Member> members;     // by rank
  // To the rendezvous or to this host's relay. It stays open for the life of the rank. Invalid in a
  // job of one rank without a launcher.
  base::Descriptor connection;
  // The other ends of such connections, if this rank serves the rendezvous or is a host relay.
  std::vector<base::Descriptor> accepted;
  // Null in a job of one host. Otherwise open, with the addresses of all ranks. The first rank of
  // each host has joined the job's multicast group, if multicast is wanted and the system allows
  // it.
  std::unique_ptr<transport::Datagrams> datagrams;
  transport::IpAddress address{};  // this host's, on the network that the job uses
  // Whether multicast is wanted; nullopt: no rank tests whether the network carries it.
  std::optional<base::Toggle> multicast{};
  wire::Key key{};  // of packets. Two jobs have different ones, also with equal UNISONO_JOB_KEYs
};

}  // namespace unisono::bootstrap
