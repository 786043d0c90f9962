// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap: how the ranks of a job find each other; those of one host come to share a memory file,
// and those of several hosts to know each other's addresses. Control path only. The rendezvous (run
// by the launcher, or by rank 0) hears every rank's Hello, then tells each who is where. Every
// phase has a deadline, and the error at its end names the ranks that did not come.
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
#include "base/result.hpp"
#include "base/settings.hpp"
#include "bootstrap/launchers/launcher.hpp"
#include "transport/datagrams.hpp"
#include "transport/udp/ip.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

struct Member {
  pid_t pid = 0;  // as the kernel vouches for it (peer credentials), in this process's namespace;
                  // 0: on another host
  int host = 0;   // hosts are numbered by their first rank, in the order of ranks
  // Its host's on the network that the job uses; in a job of one host nobody asks.
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

// A rank's place in a job, as the bootstrap leaves it.
struct Seat {
  int rank = 0;
  int ranks = 1;
  int hosts = 1;
  std::string job;          // name for people and logs; unique per job on this machine
  base::Descriptor memory;  // memfd of this host's ranks, sealed against shrinking, sparse;
                            // `memory_bytes` long, which is the same on all hosts
  std::uint64_t memory_bytes = 0;
  std::vector<Member> members;  // by rank
  base::Descriptor channel;  // connection to the rendezvous or to this host's gate, kept open for
                             // the life of the rank; invalid for a job of one rank without a
                             // launcher
  std::vector<base::Descriptor> hosted;  // the other ends, at who hosts the rendezvous or is a gate
  // Several hosts: open, and has met all peers; null otherwise. The first rank of each host is in
  // the job's multicast group, if that is wanted and the system lets it.
  std::unique_ptr<transport::Datagrams> datagrams;
  transport::IpAddress address{};  // its own; the host's on the network that the job uses
  // Whether multicast is wanted; nullopt: nobody asks whether the network carries it.
  std::optional<base::Toggle> multicast{};
  wire::Key key{};  // of packets; another for each job, also if two have one UNISONO_JOB_KEY
};

// The job that this process's environment describes (see launcher.hpp); a job of one rank if it
// describes none. Messages of this process name the rank from here on.
base::Result<JobDescription> describe_own_job(const base::Settings& settings);
// Joins it. Errors: as of choosing a meeting place (agree_on_place.hpp) and of join.hpp.
base::Result<Seat> join_job(JobDescription job, const base::Settings& settings);

}  // namespace unisono::bootstrap
