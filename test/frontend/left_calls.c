/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that the drop-in leaves to the MPI, each for another reason, a known number of times. For
 * the profiles of mpi_test.py. */
#include <mpi.h>
#include <stddef.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, sums[4] = {1, 1, 1, 1}, out[4];
  long double wide[3] = {1, 2, 3}, most[3];
  MPI_Request request;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* No blocking one before. */
  for (int i = 0; i < 2; ++i) {
    MPI_Iallreduce(sums, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Allreduce(sums, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  /* The MPI reduces this type, which may not happen in the background. */
  for (int i = 0; i < 3; ++i) {
    MPI_Iallreduce(wide, most, 3, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 4; ++i) MPI_Bcast(sums, 3, MPI_INT, 0, MPI_COMM_SELF);
  MPI_Comm half, inter;
  const int low = rank < size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 9, &inter);
  /* At these ranks the type and the count mean nothing, or are those of the other group. */
  const int root = low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
  const int is_used = rank == 0 || !low;
  MPI_Gather(is_used ? sums : NULL, is_used ? 1 : -7, is_used ? MPI_INT : MPI_DATATYPE_NULL, out, 1,
             MPI_INT, root, inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
