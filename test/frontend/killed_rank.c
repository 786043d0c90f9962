/* SPDX-License-Identifier: BSD-3-Clause */
/* killed_rank PROFILE: a rank that is killed after five allreduces, once each rank's file of the
 * profile has them. For the profiles of mpi_test.py. */
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int has_calls(const char* path) {
  static char text[1 << 16];
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  const char* const row = strstr(text, "\"collective\":\"allreduce\"");
  return row != NULL && strstr(row, "\"calls\":5,") != NULL;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, one = 1, sum = 0;
  char path[4096];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s.%d", argv[1], rank);
  for (int i = 0; i < 5; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  while (!has_calls(path)) sched_yield();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
