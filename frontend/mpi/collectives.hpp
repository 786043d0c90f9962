// SPDX-License-Identifier: BSD-3-Clause
// The drop-in's collectives, with the parameters of MPI's. Each goes to Unisono, or to the host MPI
// if the communicator, the type or the operator are not for Unisono. That depends only on arguments
// which MPI wants to be the same at all ranks, so all ranks decide alike. A call with an argument
// that is invalid at this rank goes to the host MPI, which reports it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/functions.hpp"

namespace unisono::mpi::ours {

#define UNISONO_MPI_DECLARE(name, nonblocking, parameters, ...)    \
  int name parameters;                                             \
  int nonblocking(UNISONO_MPI_UNPACK parameters, Handle* request); \
  int name##_init(UNISONO_MPI_UNPACK parameters, Handle info, Handle* request);

namespace narrow {
using Count = int;
using Offset = int;
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_DECLARE)
}  // namespace narrow

// With large counts.
namespace large {
using Count = std::int64_t;
using Offset = std::ptrdiff_t;
UNISONO_MPI_COUNTED(UNISONO_MPI_DECLARE)
}  // namespace large

#undef UNISONO_MPI_DECLARE

}  // namespace unisono::mpi::ours
