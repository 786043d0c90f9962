// SPDX-License-Identifier: BSD-3-Clause
// Which launcher started this process, and what it says: rank, size, and where the ranks meet. Each
// launcher is one row in a table of variable names. Pure over an environment map and a few facts
// about the process, so that captured environments are tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/settings.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/kvs/board.hpp"

namespace unisono::bootstrap {

enum class Launcher { none, unisono, open_mpi, hydra, torchrun, slurm, pmi };
const char* launcher_name(Launcher launcher);

// What a job's name is made of, besides the environment.
struct ProcessFacts {
  uid_t uid = 0;
  // Pid and start time of the process that all ranks of this machine descend from: the nearest
  // ancestor that is a launcher's proxy, or else the parent.
  std::string ancestor;
};
ProcessFacts process_facts();

struct JobDescription {
  Launcher launcher = Launcher::none;
  int rank = 0;
  int ranks = 1;
  Address address;  // where the ranks meet; name empty: a job of one rank that meets nobody
  bool address_given = false;  // by UNISONO_RENDEZVOUS; otherwise derived, and rank 0 hosts
  std::string key;             // empty: none
  // Of a kind that is not none: the ranks may be on several hosts, the address is of no use yet,
  // and they agree on one over the launcher's board (agree_on_place.hpp).
  BoardOptions board;
  // What decides where things lie in the job's memory, as a number that has to be the same for all
  // ranks of a job of several hosts. Not from the environment: the caller of join() knows it.
  std::uint64_t memory_layout = 0;
};

// UNISONO_RANK and UNISONO_SIZE come first, then Open MPI, hydra (MPICH, Intel MPI), torchrun,
// Slurm, others that speak PMI. UNISONO_RENDEZVOUS overrides the derived meeting place of any of
// them. Errors: argument (a variable is missing or no number, with its name), unsupported (the
// launcher speaks of several hosts and has no board, and no tcp rendezvous is given at which they
// could meet).
base::Result<JobDescription> describe_job(const base::Environment& environment,
                                          const base::Settings& settings,
                                          const ProcessFacts& facts);

// Whether the job's ranks may turn out to be on several hosts.
bool may_span_hosts(const JobDescription& job);

}  // namespace unisono::bootstrap
