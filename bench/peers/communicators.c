/* SPDX-License-Identifier: BSD-3-Clause
 *
 * communicators COUNT: duplicates MPI_COMM_WORLD, does one allreduce on the duplicate and frees it,
 * COUNT times. Rank 0 prints as JSON the median and the mean time of one in us, and by how much the
 * descriptors and the memory (KiB, all ranks) have grown since the first tenth. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long descriptors(void) {
  long count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static long resident_kib(void) {
  char line[256];
  long found = 0;
  FILE* const file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "VmRSS:", 6) == 0) found = strtol(line + 6, NULL, 10);
  }
  fclose(file);
  return found;
}

static void make_and_free(int count, double* times) {
  for (int i = 0; i < count; ++i) {
    const double start = MPI_Wtime();
    MPI_Comm comm;
    int one = 1, sum = 0, size = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Comm_free(&comm);
    times[i] = MPI_Wtime() - start;
  }
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 1000;
  const int first = count / 10 + 1;
  int rank;
  long before[2], grown[2], all[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  double* const times = malloc((size_t)(count + first) * sizeof *times);
  make_and_free(first, times);
  before[0] = descriptors();
  before[1] = resident_kib();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  make_and_free(count, times);
  MPI_Barrier(MPI_COMM_WORLD);
  const double us = (MPI_Wtime() - start) * 1e6 / count;
  grown[0] = descriptors() - before[0];
  grown[1] = resident_kib() - before[1];
  MPI_Reduce(grown, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  qsort(times, (size_t)count, sizeof *times, compare);
  const double median = times[count / 2] * 1e6;
  free(times);
  if (rank == 0) {
    printf("{\"us\": %.2f, \"mean_us\": %.2f, \"descriptors\": %ld, \"memory_kib\": %ld}\n", median,
           us, all[0], all[1]);
  }
  MPI_Finalize();
  return 0;
}
