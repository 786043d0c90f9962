/* SPDX-License-Identifier: BSD-3-Clause */
/* at_exit WAY: MPI is used, and ended, after main(), where younger objects of libraries may have
 * ended. atexit: in a function of atexit() that is older than MPI_Init. destructor: in a destructor
 * of the program. Prints "fine". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int expect_end = 0;

static void fail(const char* what) {
  fprintf(stderr, "not true: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void expect_sum(MPI_Comm comm, int size) {
  int one = 1, sums[2] = {0, 0};
  MPI_Request request;
  MPI_Allreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, comm);
  MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (sums[0] != size || sums[1] != size) fail("the sums are the number of ranks");
}

/* Unisono reports both: the ranks' lengths differ. The bare MPI may not. */
static void make_errors(int rank) {
  for (int starts = 0; starts < 2; ++starts) {
    char bytes[8] = {0};
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    if (starts) {
      MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, bytes, 1 + rank % 2, MPI_BYTE, comm, &request);
      if (MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS) fail("an error of the wait");
    } else if (MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, bytes, 1 + rank % 2, MPI_BYTE, comm) ==
               MPI_SUCCESS) {
      fail("an error");
    }
    MPI_Comm_free(&comm);
  }
}

static void use(void) {
  int rank = 0, size = 0;
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  expect_sum(MPI_COMM_WORLD, size);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
  expect_sum(comm, size);
  MPI_Comm_free(&comm);
  make_errors(rank);
}

static void end(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  use();
  if (rank == 0) puts("fine");
  fflush(stdout); /* before the end: a launcher may not wait for more output */
  MPI_Finalize();
}

__attribute__((destructor)) static void end_late(void) {
  if (expect_end) end();
}

int main(int argc, char** argv) {
  expect_end = strcmp(argv[1], "destructor") == 0;
  if (!expect_end) atexit(end);
  MPI_Init(&argc, &argv);
  use();
  return 0;
}
