// SPDX-License-Identifier: BSD-3-Clause
// Which launcher started this process, and what it says of the job: rank, size, rendezvous. Each
// launcher is one row in a table of variable names. The functions depend on an environment map and
// a few facts about the process only, so that captured environments are tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/launchers/stores.hpp"

namespace unisono::bootstrap {

enum class Launcher { none, unisono, open_mpi, hydra, torchrun, slurm, pmi };
const char* launcher_name(Launcher launcher);

// The identity of a job besides its environment.
struct ProcessFacts {
  uid_t uid = 0;
  // Pid and start time of the process from which all ranks on this host descend. This is the
  // nearest ancestor that is a launcher's proxy, otherwise the parent.
  std::string ancestor;
};
ProcessFacts process_facts();

struct JobDescription {
  Launcher launcher = Launcher::none;
  int rank = 0;
  int ranks = 1;
  Address address;             // of the rendezvous; name empty: a job of one rank needs none
  bool address_given = false;  // by UNISONO_RENDEZVOUS; otherwise derived, and rank 0 serves it
  std::string key;             // empty: none
  // With a kind that is not none the ranks may be on several hosts. Then the address above is not
  // the final one: the ranks choose it over this store (choose_rendezvous_address.hpp).
  StoreOptions store;
  // A number that depends on the layout of the job's memory. It has to be the same for all ranks of
  // a job of several hosts. The caller of join() sets it.
  std::uint64_t memory_layout = 0;
  // With another code than ok this rank cannot start. It joins only to tell the others, and gets an
  // error.
  base::Error failure{};
};

// UNISONO_RANK and UNISONO_SIZE come first, then Open MPI, hydra (MPICH, Intel MPI), torchrun,
// Slurm, other launchers with PMI. UNISONO_RENDEZVOUS overrides the derived address of any of them.
// Error argument: a variable is missing or no number; the message names it. Error unsupported:
// ranks are on several hosts, the launcher has no key-value store, and UNISONO_RENDEZVOUS gives no
// tcp address.
base::Result<JobDescription> describe_job(const base::Environment& environment,
                                          const base::Settings& settings,
                                          const ProcessFacts& facts);

// Whether the job's ranks may turn out to be on several hosts.
bool may_span_hosts(const JobDescription& job);

}  // namespace unisono::bootstrap
