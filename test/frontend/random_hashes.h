/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For random programs: rank 0 prints what all ranks found, so that runs can be compared. */
#pragma once

#include <mpi.h>
#include <stdio.h>

/* By messages alone, in which the drop-in has no part. One rank prints, as lines of several may get
 * mixed. */
static void print_hashes(unsigned long long seed, int steps, unsigned long long own_hash) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != 0) {
    MPI_Send(&own_hash, 1, MPI_UNSIGNED_LONG_LONG, 0, 6, MPI_COMM_WORLD);
    return;
  }
  printf("seed %llu: %d steps, hashes %016llx", seed, steps, own_hash);
  for (int r = 1; r < ranks; ++r) {
    unsigned long long of_rank = 0;
    MPI_Recv(&of_rank, 1, MPI_UNSIGNED_LONG_LONG, r, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf(" %016llx", of_rank);
  }
  printf("\n");
}
