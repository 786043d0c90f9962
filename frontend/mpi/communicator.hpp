// SPDX-License-Identifier: BSD-3-Clause
// Communicator: what the drop-in keeps for a communicator of the program, as an attribute of it. At
// the first blocking collective all its ranks agree on the collectives that Unisono does, and make
// a Unisono communicator over the host's allgather (home.hpp). If that fails, it fails on all
// ranks, and the host MPI does all collectives of the communicator. The attribute's deletion ends
// the Unisono communicator, once no request is left. As of MPI, one thread at a time calls its
// collectives.
#pragma once

#include <cstdint>
#include <string>

#include "home.hpp"
#include "host/functions.hpp"
#include "pending.hpp"
#include "ranges/host_ranges.hpp"
#include "selection.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

struct Ranks {
  int rank = 0;  // this one
  int size = 0;
};

struct Communicator : Ranks {
  Handle handle = 0;
  const char* why_host = "";      // without a Unisono communicator: why
  std::uint32_t collectives = 0;  // bits of Collective: those that Unisono does
  bool is_measured = false;       // compared with the host MPI before the first call
  HostRanges host_ranges;         // in which the host MPI does blocking calls of these
  UnisonoComm unisono;
  PendingCalls pending;

  bool does(Collective collective) const {
    return (collectives >> static_cast<unsigned>(collective) & 1U) != 0;
  }
};

// Null: the host MPI does the call, as outside of MPI_Init and MPI_Finalize.
Communicator* find_communicator(Handle comm, Collective collective);
// The same for a nonblocking call, which cannot make one of Unisono: no rank waits for another in
// it.
Communicator* find_made_communicator(Handle comm, Collective collective);

// Why the host MPI does a call on the communicator for which these two give none; for people.
const char* why_host(Handle comm);

// Ends all that Unisono does, before the host's MPI_Finalize. From then on the host MPI does all
// calls.
void end_communicators();

// Reports an error of Unisono by the error handler of the program's communicator. Gives the MPI
// error code, if the handler returns.
int report_error(Handle comm, int error, const std::string& text);
// The same with a class of MPI's.
int report_class(Handle comm, int error_class, const std::string& text);

}  // namespace unisono::mpi
