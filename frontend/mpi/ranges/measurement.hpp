// SPDX-License-Identifier: BSD-3-Clause
// Measurement: compares Unisono's blocking collectives with the host MPI's in the program itself,
// for `unisono mpirun --tune`, which makes ranges of the times and writes them into the machine
// file. So it needs no MPI compiler, and the ranks are where the user's ranks are. Each side is
// called as the program would call it. The program's thread.
#pragma once

#include <string>

namespace unisono::mpi {

struct Communicator;

// UNISONO_MPI_TUNE: where rank 0 writes the times. Empty: nothing is measured.
std::string measurement_file();

// Collective, on a communicator of all ranks; once in a process. It takes seconds. The file has the
// lines `library NAME`, `ranks N`, `hosts N`, and for each cell
//     COLLECTIVE BYTES LOOP LOOP_HOST SINGLE SINGLE_HOST
// with nanoseconds of a call: medians of rounds in which Unisono and the host MPI take turns. LOOP
// is of calls in a row, at the slowest rank; SINGLE of calls behind a barrier each, over all ranks.
// A collective has one line, with geometric means over the lengths and 0 bytes, if no rank knows
// the other ranks' blocks: gatherv, scatterv, alltoallv and alltoallw of more than two ranks.
void measure(Communicator& comm, const std::string& file);

}  // namespace unisono::mpi
