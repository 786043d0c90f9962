// SPDX-License-Identifier: BSD-3-Clause
// MPI's functions on requests, as the drop-in interposes them. They start persistent collectives of
// Unisono. Only Open MPI lets the drop-in's calls go on while the program waits. With other MPIs
// and calls of Unisono pending, waits become tests here, with Unisono's progress in between.
// Otherwise they go straight to the host MPI. Any thread.
#pragma once

#include "host/functions.hpp"

namespace unisono::mpi::ours {

#define UNISONO_MPI_DECLARE(name, parameters, ...) int name parameters;
UNISONO_MPI_REQUESTS(UNISONO_MPI_DECLARE)
UNISONO_MPI_LATER_REQUESTS(UNISONO_MPI_DECLARE)
#undef UNISONO_MPI_DECLARE

}  // namespace unisono::mpi::ours
