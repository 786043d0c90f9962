/* SPDX-License-Identifier: BSD-3-Clause */
/* early_end WAY: three allreduces, and at once an end without MPI_Finalize. Rank 0 calls MPI_Abort;
 * or PMPI_Abort, as wrappers for Fortran do; or all call exit(). For the profiles of mpi_test.py.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank = 0, one = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (strcmp(argv[1], "exit") == 0) exit(0);
  if (rank == 0 && strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  if (rank == 0) PMPI_Abort(MPI_COMM_WORLD, 5);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
