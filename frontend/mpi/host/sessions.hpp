// SPDX-License-Identifier: BSD-3-Clause
// Sessions of MPI 4 beside MPI_COMM_WORLD. Unisono's jobs end with MPI_Finalize, so communicators
// are for Unisono only between MPI_Init and MPI_Finalize, also those of sessions. Any thread.
#pragma once

#include "host/functions.hpp"

namespace unisono::mpi {

// MPI_Session_init by the host. An MPI error code.
int start_session(Handle info, Handle error_handler, Handle* session);

// Whether the program has called MPI_Init, and not yet MPI_Finalize.
bool has_world();

}  // namespace unisono::mpi
