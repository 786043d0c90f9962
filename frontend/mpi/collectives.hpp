// SPDX-License-Identifier: BSD-3-Clause
// The drop-in's collectives, with the parameters of MPI's. Each goes to Unisono, or to the host MPI
// if the communicator, the type or the operator are not for Unisono. That depends only on arguments
// which MPI wants to be the same at all ranks, so all ranks decide alike. A call with an argument
// that is invalid at this rank goes to the host MPI, which reports it.
#pragma once

#include "host/functions.hpp"

namespace unisono::mpi::ours {

#define UNISONO_MPI_DECLARE(name, nonblocking, parameters, ...) \
  int name parameters;                                          \
  int nonblocking(UNISONO_MPI_UNPACK parameters, Handle* request);
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_DECLARE)
#undef UNISONO_MPI_DECLARE

}  // namespace unisono::mpi::ours
