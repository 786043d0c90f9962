// SPDX-License-Identifier: BSD-3-Clause
// A communicator of this rank alone, in which the drop-in calls the host MPI for itself: a failed
// call gives its error and calls no error handler of the program. Any thread.
#pragma once

#include "host/functions.hpp"

namespace unisono::mpi {

// Makes it at the first call; between MPI_Init and MPI_Finalize. False: the host cannot.
bool find_alone(Handle* comm);

}  // namespace unisono::mpi
