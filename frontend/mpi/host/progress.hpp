// SPDX-License-Identifier: BSD-3-Clause
// The host MPI's progress. A rank that waits in Unisono's collective carries the host's
// communication on, so it holds up no rank that waits for its point-to-point messages. Any thread.
#pragma once

namespace unisono::mpi {

// Before the first carry_host_on(), between MPI_Init and MPI_Finalize.
void prepare_progress();
// Lets the host take one step. It does not wait.
void carry_host_on();
// Whether this thread is in carry_host_on(): the host may then call back, for instance to delete an
// attribute, where no collective can be touched.
bool is_carrying_host_on();
// Before the host's MPI_Finalize.
void end_progress();

}  // namespace unisono::mpi
