// SPDX-License-Identifier: BSD-3-Clause
// JobInfo: what a rank knows of its job when the bootstrap has ended: its number, the ranks and
// their hosts, the memory file of its host, and open datagrams to other hosts. Plain data; one
// owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/start_connections.hpp"
#include "topology/host_map.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

// One rank of the job.
struct RankLocation {
  pid_t pid = 0;  // in this process's pid namespace, as the kernel reports it for the rank's
                  // connection; 0: on another host
  // The host's address on the network that the job uses; nullopt in a job of one host.
  std::optional<transport::IpAddress> address{};
};

struct JobInfo {
  int rank = 0;
  int ranks = 1;
  topology::HostMap hosts;  // empty: one host
  std::string job;          // name for people and logs; unique per job on this machine
  // "UNISONO_LEARN: rank 1 has on, the others have off": settings that differ though they should be
  // alike; empty: none.
  std::string differing_settings{};
  bool repeats_warnings = true;  // rank 0 warns of the same unknown settings
  base::Descriptor memory;  // this host's memory file: a sparse memfd, sealed against shrinking
  std::uint64_t memory_bytes = 0;     // its length, the same on all hosts
  std::vector<RankLocation> members;  // by rank
  // To the rendezvous or to this host's relay. They stay open for the life of the rank. Null in a
  // job of one rank without a launcher, and in a job of threads.
  std::unique_ptr<StartConnections> connections;
  // Null in a job of one host. Otherwise open, with the addresses of all ranks. The first rank of
  // each host has joined the job's multicast group, if multicast is wanted and the system allows
  // it.
  std::unique_ptr<transport::Datagrams> datagrams;
  transport::IpAddress address{};  // this host's, on the network that the job uses
  // Whether multicast is wanted; nullopt: no rank tests whether the network carries it.
  std::optional<base::Toggle> multicast{};
  // The cores of the machine that all hosts are on; 0: they are not known to be on one.
  int shared_cores = 0;
  // Whether rank 0 sends its machine file to all; otherwise all have the default machine.
  bool shares_machine = true;
  wire::Key key{};  // of packets. Two jobs have different ones, also with equal UNISONO_JOB_KEYs
};

}  // namespace unisono::bootstrap
