/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs of scenarios share: a program runs the scenario that its argument names, and
 * prints "fine" at rank 0 if what it expects came true. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d: not true: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}
#define EXPECT(condition) expect(condition, #condition)

typedef struct {
  const char* name;
  void (*run)(void);
} Scenario;

static void start_scenarios(int* argc, char*** argv) {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void run_scenario(const Scenario* all, size_t count, const char* name) {
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(name, all[i].name) == 0) all[i].run();
  }
}

/* Completes all requests of an array, in one of MPI's ways. Each rank chooses its own. */
static inline void complete_all(int count, MPI_Request* requests, int way) {
  int indices[16], done = 0, index = 0, left = count;
  switch ((way + rank) % 6) {
    case 0:
      MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
      break;
    case 1:
      while (!done) MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
      break;
    case 2:
      for (; left > 0; --left) {
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        EXPECT(index != MPI_UNDEFINED);
      }
      break;
    case 3:
      while (left > 0) {
        MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        EXPECT(done != MPI_UNDEFINED && done > 0);
        left -= done;
      }
      break;
    case 4:
      while (left > 0) {
        MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE);
        if (done && index != MPI_UNDEFINED) --left;
      }
      break;
    default:
      for (int i = count - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
}
