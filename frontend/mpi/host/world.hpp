// SPDX-License-Identifier: BSD-3-Clause
// Whether MPI_COMM_WORLD exists, beside which there may be sessions of MPI 4. Unisono's jobs end
// with MPI_Finalize, so communicators are for Unisono only between MPI_Init and MPI_Finalize, also
// those of sessions. And how a communicator differs from those of MPI_COMM_WORLD. Any thread.
#pragma once

#include "host/functions.hpp"

namespace unisono::mpi {

// After the host's MPI_Init or MPI_Init_thread, whose MPI error code it gives.
int note_init(int error);

// Whether the program has called MPI_Init, and not yet MPI_Finalize.
bool has_world();

// Whether the communicator's ranks are threads (MPIX_Threadcomm_init of MPICH).
bool is_of_threads(Handle comm);
// Whether its requests may stand beside those of MPI_COMM_WORLD in an array, as carriers of
// persistent calls do. Open MPI 5 takes no messages of two sessions in one function.
bool has_requests_of_world(Handle comm);

// Whether the program may revoke communicators (MPIX_Comm_revoke): Open MPI 5, if its command asks
// for fault tolerance.
bool may_revoke();
bool is_revoked(Handle comm);

}  // namespace unisono::mpi
