/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the programs of scenarios share: a program runs the scenarios that its argument names, with
 * commas between them, and prints "fine" at rank 0 if what they expect came true. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static const char* current = ""; /* scenario */

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d: %s: not true: %s\n", rank, current, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
  _Exit(3); /* MPICH 5 comes back, and the program could go on to "fine" before it is ended */
}
#define EXPECT(condition) expect(condition, #condition)

static inline int class_of(int code) {
  int of_code = -1;
  MPI_Error_class(code, &of_code);
  return of_code;
}

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

/* Says each one's name where there are more: the last one may hang. */
static inline void run_scenario(const Scenario* all, size_t count, const char* names) {
  char words[1000];
  EXPECT(strlen(names) < sizeof words);
  strcpy(words, names);
  for (const char* name = strtok(words, ","); name != NULL; name = strtok(NULL, ",")) {
    for (size_t i = 0; i < count; ++i) {
      if (strcmp(name, all[i].name) != 0) continue;
      current = all[i].name;
      if (rank == 0 && strcmp(name, names) != 0) fprintf(stderr, "scenario %s\n", name);
      all[i].run();
    }
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
