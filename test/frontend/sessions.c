/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators of sessions (MPI 4), in programs of a few lines each, by name: sessions NAME.
 * Prints "fine"; "none" if the MPI has no sessions. */
#include <stdlib.h>

#include "persistent.h"
#include "scenario.h"

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)

static MPI_Session session;

static MPI_Comm from_session(int of_even_ranks) {
  MPI_Group all, some;
  MPI_Comm made;
  int own, count;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Group_rank(all, &own);
  MPI_Group_size(all, &count);
  int even[1][3] = {{0, count - 1 - (count - 1) % 2, 2}};
  MPI_Group_range_incl(all, 1, even, &some);
  made = MPI_COMM_NULL;
  if (!of_even_ranks || own % 2 == 0) {
    MPI_Comm_create_from_group(of_even_ranks ? some : all, of_even_ranks ? "even" : "all",
                               MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

static void expect_here(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not true: %s\n", what);
  abort();
}

/* Collectives of each form. */
static void use(MPI_Comm comm) {
  int own, count, sum = -1, request_sum = -1, persistent_sum = -1;
  MPI_Request request;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &count);
  const int expected = count * (count - 1) / 2;
  MPI_Barrier(comm);
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect_here(sum == expected, "the sum of an allreduce");
  MPI_Iallreduce(&own, &request_sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_here(request_sum == expected, "the sum of a nonblocking allreduce");
  PERSISTENT(Allreduce)(&own, &persistent_sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  for (int i = 0; i < 3; ++i) {
    persistent_sum = -1;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_here(persistent_sum == expected, "the sum of a persistent allreduce");
  }
  /* Beside messages: one function takes no requests of two sessions. */
  MPI_Request three[3] = {MPI_REQUEST_NULL, request, MPI_REQUEST_NULL};
  int received = -1;
  MPI_Irecv(&received, 1, MPI_INT, (own + count - 1) % count, 3, comm, &three[0]);
  MPI_Start(&three[1]);
  MPI_Isend(&own, 1, MPI_INT, (own + 1) % count, 3, comm, &three[2]);
  MPI_Waitall(3, three, MPI_STATUSES_IGNORE);
  expect_here(received == (own + count - 1) % count, "a message beside a persistent allreduce");
  MPI_Request_free(&request);
}

static void use_derived(MPI_Comm comm) {
  MPI_Comm half, same;
  int own;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_split(comm, own % 2, own, &half);
  MPI_Comm_dup(comm, &same);
  use(half);
  use(same);
  MPI_Comm_free(&half);
  MPI_Comm_free(&same);
}

static void start_session(void) { MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session); }

/* No MPI_Init at all. */
static void alone(void) {
  start_session();
  MPI_Comm all = from_session(0), even = from_session(1);
  MPI_Comm_rank(all, &rank);
  use(all);
  if (even != MPI_COMM_NULL) use(even);
  use_derived(all);
  use(all);
  if (even != MPI_COMM_NULL) MPI_Comm_free(&even);
  MPI_Comm_free(&all);
  MPI_Session_finalize(&session);
}

/* Beside MPI_COMM_WORLD. */
static void beside(void) {
  start_scenarios(NULL, NULL);
  start_session();
  MPI_Comm all = from_session(0), even = from_session(1);
  use(all);
  use(MPI_COMM_WORLD);
  if (even != MPI_COMM_NULL) use(even);
  use_derived(all);
  use(all);
  if (even != MPI_COMM_NULL) MPI_Comm_free(&even);
  MPI_Comm_free(&all);
  MPI_Session_finalize(&session);
  use(MPI_COMM_WORLD);
  MPI_Finalize();
}

/* Before, while and after MPI_COMM_WORLD exists. */
static void around(void) {
  start_session();
  MPI_Comm all = from_session(0), even = from_session(1);
  use(all);
  start_scenarios(NULL, NULL);
  use(all);
  if (even != MPI_COMM_NULL) use(even);
  use(MPI_COMM_WORLD);
  MPI_Finalize();
  use(all);
  if (even != MPI_COMM_NULL) {
    use(even);
    MPI_Comm_free(&even);
  }
  use_derived(all);
  MPI_Comm_free(&all);
  MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
  static const Scenario all[] = {{"alone", alone}, {"beside", beside}, {"around", around}};
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (rank == 0) puts("fine");
  return 0;
}

#else

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (rank == 0) puts("none");
  MPI_Finalize();
  return 0;
}

#endif
