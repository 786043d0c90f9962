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
// lines `library NAME`, `ranks N` and `hosts N`, and one line for each cell:
//
//     COLLECTIVE BYTES LOOP LOOP_HOST SINGLE SINGLE_HOST
//
// The last four are nanoseconds of a call: medians of rounds in which Unisono and the host MPI take
// turns. LOOP times calls in a row, at the slowest rank. SINGLE times calls behind a barrier each,
// over all ranks.
//
// If no rank knows the other ranks' blocks, a collective has one line with 0 bytes. Its times are
// geometric means over the lengths. These are gatherv, scatterv, alltoallv and alltoallw of more
// than two ranks.
void measure(Communicator& comm, const std::string& file);

}  // namespace unisono::mpi
