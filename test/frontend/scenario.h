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
