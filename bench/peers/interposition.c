/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interposition TURNS CALLS: what a call of the program costs more than Unisono's own. In a process
 * with the drop-in, which is also linked with Unisono, all ranks call by turns MPI's function and
 * that of the C API. Each side has communicators of its own, of which a turn takes one: where their
 * memory lies makes a difference, too. A third side, the C API on other communicators, shows how
 * much. Rank 0 prints as JSON for each collective the times of a call in ns: for each turn, the
 * slowest rank's time of CALLS calls in a row, divided by their number.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unisono/unisono.h>

enum { COMMUNICATORS = 4, WARM_UP = 200, MOST_TURNS = 10000, MOST_RANKS = 64 };
enum side { WITH, OWN, AGAIN, SIDES };
static const char* const names_of_sides[SIDES] = {"drop_in", "c_api", "c_api_again"};

enum collective {
  BARRIER,
  BROADCAST,
  REDUCE,
  ALLREDUCE,
  ALLGATHER,
  GATHER,
  SCATTER,
  ALLTOALL,
  REDUCE_SCATTER,
  SCAN,
  IN_PLACE,     /* an allreduce */
  DERIVED_TYPE, /* a broadcast of elements of a type that the program has made */
  COLLECTIVES
};
static const char* const names[COLLECTIVES] = {
    "barrier",   "broadcast",          "reduce",
    "allreduce", "allgather",          "gather",
    "scatter",   "alltoall",           "reduce_scatter",
    "scan",      "allreduce in place", "broadcast, derived type"};
static const int bytes_of[] = {8, 1024};

static int rank, ranks;
static MPI_Comm control;
static MPI_Datatype made_type;
static MPI_Comm comms[COMMUNICATORS];
static unisono_comm_t own[2][COMMUNICATORS];
static double* in;
static double* out;

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "interposition: rank %d: %s: %s\n", rank, what, unisono_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

static void check(int code) {
  if (code != 0) fail("a call failed");
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int allgather(const void* input, void* output, size_t bytes, void* user) {
  (void)user;
  return PMPI_Allgather(input, (int)bytes, MPI_BYTE, output, (int)bytes, MPI_BYTE, control);
}

static void make_communicators(void) {
  const unisono_exchange_t exchange = {allgather, NULL, 1};
  unisono_comm_t world;
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  check(unisono_init_with(rank, ranks, &exchange, NULL, &world));
  for (int i = 0; i < COMMUNICATORS; ++i) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    check(MPI_Barrier(comms[i]));
    for (int side = 0; side < 2; ++side) check(unisono_comm_dup(world, &own[side][i]));
  }
}

static int by_mpi(enum collective which, int count, MPI_Comm comm) {
  switch (which) {
    case BARRIER:
      return MPI_Barrier(comm);
    case BROADCAST:
      return MPI_Bcast(in, count, MPI_DOUBLE, 0, comm);
    case REDUCE:
      return MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, comm);
    case ALLREDUCE:
      return MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
    case ALLGATHER:
      return MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, comm);
    case GATHER:
      return MPI_Gather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, comm);
    case SCATTER:
      return MPI_Scatter(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, comm);
    case ALLTOALL:
      return MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, comm);
    case REDUCE_SCATTER:
      return MPI_Reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
    case SCAN:
      return MPI_Scan(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
    case IN_PLACE:
      return MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_DOUBLE, MPI_SUM, comm);
    case DERIVED_TYPE:
      return MPI_Bcast(in, count, made_type, 0, comm);
    case COLLECTIVES:
      break;
  }
  return -1;
}

static int by_unisono(enum collective which, int count, unisono_comm_t comm) {
  const unisono_type_t type = UNISONO_FLOAT64;
  const unisono_op_t sum = UNISONO_SUM;
  switch (which) {
    case BARRIER:
      return unisono_barrier(comm);
    case BROADCAST:
      return unisono_broadcast(in, count, type, 0, comm);
    case REDUCE:
      return unisono_reduce(in, out, count, type, sum, 0, comm);
    case ALLREDUCE:
      return unisono_allreduce(in, out, count, type, sum, comm);
    case ALLGATHER:
      return unisono_allgather(in, out, count, type, comm);
    case GATHER:
      return unisono_gather(in, out, count, type, 0, comm);
    case SCATTER:
      return unisono_scatter(in, out, count, type, 0, comm);
    case ALLTOALL:
      return unisono_alltoall(in, out, count, type, comm);
    case REDUCE_SCATTER:
      return unisono_reduce_scatter_block(in, out, count, type, sum, comm);
    case SCAN:
      return unisono_scan(in, out, count, type, sum, comm);
    case IN_PLACE:
      return unisono_allreduce(UNISONO_IN_PLACE, in, count, type, sum, comm);
    case DERIVED_TYPE:
      return unisono_broadcast(in, count, type, 0, comm);
    case COLLECTIVES:
      break;
  }
  return -1;
}

/* The calls of the loop are those of a program: the collective is known when it is compiled. */
#define LOOP(which)                                                                      \
  case which:                                                                            \
    for (int i = 0; i < calls; ++i) {                                                    \
      check(side == WITH ? by_mpi(which, count, comm) : by_unisono(which, count, ours)); \
    }                                                                                    \
    break;
static inline __attribute__((always_inline)) void run_side(enum collective which, int side,
                                                           int count, int calls, int turn) {
  const MPI_Comm comm = comms[turn % COMMUNICATORS];
  const unisono_comm_t ours = own[side == AGAIN][turn % COMMUNICATORS];
  switch (which) {
    LOOP(BARRIER)
    LOOP(BROADCAST)
    LOOP(REDUCE)
    LOOP(ALLREDUCE)
    LOOP(ALLGATHER)
    LOOP(GATHER)
    LOOP(SCATTER)
    LOOP(ALLTOALL)
    LOOP(REDUCE_SCATTER)
    LOOP(SCAN)
    LOOP(IN_PLACE)
    LOOP(DERIVED_TYPE)
    case COLLECTIVES:
      break;
  }
}
static void run(enum collective which, int side, int count, int calls, int turn) {
  if (side == WITH)
    run_side(which, WITH, count, calls, turn);
  else
    run_side(which, side, count, calls, turn);
}

static double one_turn(enum collective which, int side, int count, int calls, int turn) {
  run(which, side, count, WARM_UP, turn);
  check(unisono_barrier(own[0][0]));
  const double start = now_ns();
  run(which, side, count, calls, turn);
  return (now_ns() - start) / calls;
}

static void measure(enum collective which, int bytes, int turns, int calls, int is_first) {
  static double times[SIDES][MOST_TURNS];
  const int count = bytes / (int)sizeof(double);
  for (int turn = -COMMUNICATORS; turn < turns; ++turn) { /* first, plans */
    for (int i = 0; i < SIDES; ++i) {
      const int side = (turn + COMMUNICATORS + i) % SIDES;
      memset(in, 0, (size_t)bytes); /* sums would grow */
      const double ns = one_turn(which, side, count, calls, turn + COMMUNICATORS);
      if (turn >= 0) times[side][turn] = ns;
    }
  }
  if (rank == 0) {
    printf("%s\n  {\"collective\": \"%s\", \"bytes\": %d", is_first ? "" : ",", names[which],
           which == BARRIER ? 0 : bytes);
  }
  for (int side = 0; side < SIDES; ++side) {
    check(PMPI_Allreduce(MPI_IN_PLACE, times[side], turns, MPI_DOUBLE, MPI_MAX, control));
    if (rank == 0) printf(", \"%s\": [", names_of_sides[side]);
    for (int i = 0; rank == 0 && i < turns; ++i) printf("%s%.1f", i ? "," : "", times[side][i]);
    if (rank == 0) printf("]");
  }
  if (rank == 0) printf("}");
}

int main(int argc, char** argv) {
  const int turns = argc > 1 ? atoi(argv[1]) : 48, calls = argc > 2 ? atoi(argv[2]) : 2000;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (turns < 1 || turns > MOST_TURNS || calls < 1 || ranks > MOST_RANKS) fail("bad arguments");
  MPI_Barrier(MPI_COMM_WORLD);
  make_communicators();
  MPI_Type_contiguous(1, MPI_DOUBLE, &made_type);
  MPI_Type_commit(&made_type);
  in = aligned_alloc(64, MOST_RANKS * 1024);
  out = aligned_alloc(64, MOST_RANKS * 1024);
  if (!in || !out) fail("out of memory");
  memset(in, 0, MOST_RANKS * 1024);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n,\"\\")] = '\0';
  for (char* each = version; *each; ++each) {
    if (*each == '\t') *each = ' ';
  }
  if (rank == 0) printf("{\"library\": \"%s\", \"ranks\": %d, \"results\": [", version, ranks);
  for (int which = 0; which < COLLECTIVES; ++which) {
    for (int i = 0; i < (which == BARRIER ? 1 : 2); ++i) {
      measure((enum collective)which, bytes_of[i], turns, calls, which == BARRIER);
    }
  }
  if (rank == 0) printf("]}\n");
  MPI_Finalize();
  return 0;
}
