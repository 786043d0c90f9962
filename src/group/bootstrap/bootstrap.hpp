// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap: how the ranks of a job find each other and come to share one memory file. Control path
// only. The rendezvous (run by the launcher, or by rank 0) hears every rank's HELLO, then hands
// each the memory file and the table of members over a Unix socket. Every phase has a deadline, and
// the error at its end names the ranks that did not come.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::group {

struct Member {
  pid_t pid = 0;  // as the kernel vouches for it (peer credentials), in this process's namespace;
                  // 0: on another host
  int host = 0;
};

// A rank's place in a job, as the bootstrap leaves it.
struct Seat {
  int rank = 0;
  int ranks = 1;
  std::string job;          // name for people and logs; unique per job on this machine
  base::Descriptor memory;  // memfd, sealed against shrinking, `memory_bytes` long and sparse
  std::uint64_t memory_bytes = 0;
  std::vector<Member> members;  // by rank
  base::Descriptor channel;     // connection to the rendezvous, kept open for the life of the rank;
                                // invalid for a job of one rank without a launcher
  std::vector<base::Descriptor> hosted;  // rank 0 as host of the rendezvous: the other ends
};

// Joins the job that the environment describes (see launcher.hpp); a job of one rank if it
// describes none.
base::Result<Seat> join_from_environment();

}  // namespace unisono::group
