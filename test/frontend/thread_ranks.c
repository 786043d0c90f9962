/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives whose ranks are threads (MPIX_Threadcomm_init of MPICH 4.2 and later), beside those
 * of processes. Prints "fine"; "none" if the MPI has no such communicators. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40200000 && !defined(I_MPI_VERSION)

enum { kThreads = 2, kRounds = 20 };
static MPI_Comm threads;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not true: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
  _Exit(3); /* MPICH 5 comes back */
}

static int sum_of_ranks(MPI_Comm comm) {
  int rank, size, sum = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return size * (size - 1) / 2 - sum;
}

static void* run_thread(void* nothing) {
  MPIX_Threadcomm_start(threads);
  int rank, processes;
  MPI_Comm_rank(threads, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  for (int round = 0; round < kRounds; ++round) {
    const int root = round % processes; /* MPICH 5.0 takes no higher one */
    int word = rank == root ? round : -1;
    MPI_Barrier(threads);
    MPI_Bcast(&word, 1, MPI_INT, root, threads);
    expect(word == round, "the word of a broadcast among threads");
    expect(sum_of_ranks(threads) == 0, "the sum of an allreduce among threads");
  }
  MPIX_Threadcomm_finish(threads);
  return nothing;
}

int main(int argc, char** argv) {
  int provided, rank;
  pthread_t others[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expect(sum_of_ranks(MPI_COMM_WORLD) == 0, "the sum of an allreduce before");
  MPIX_Threadcomm_init(MPI_COMM_WORLD, kThreads, &threads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&others[i], NULL, run_thread, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(others[i], NULL);
  MPIX_Threadcomm_free(&threads);
  expect(sum_of_ranks(MPI_COMM_WORLD) == 0, "the sum of an allreduce after");
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}

#else

int main(void) {
  puts("none");
  return 0;
}

#endif
