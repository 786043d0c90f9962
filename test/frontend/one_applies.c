/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With UNISONO_HETEROGENEOUS=on, one rank applies the operator to each element: the root of a
 * reduce, otherwise rank 0. The operators here count their elements. They give other bits at each
 * rank, as processors with different arithmetic do. Nonblocking and persistent calls are looked at
 * with MPI_SUM: one rank that combines in the order of ranks gives other bits than trees do. */
#include "persistent.h"
#include "scenario.h"

#include <stddef.h>

enum { kMost = 20001 };

typedef struct {
  double value;
  int number;
} Pair; /* with a gap at its end */

static long long applied = 0;
static int is_sum = 0; /* MPI_SUM, which does not count */

static double combined(double left, double right, int by) {
  return is_sum ? left + right : (left + right) * (0.75 + by);
}

static void combine(void* first, void* second, int* count, MPI_Datatype* type) {
  (void)type;
  applied += *count;
  double* const out = second;
  for (int i = 0; i < *count; ++i) out[i] = combined(((double*)first)[i], out[i], rank);
}

static void combine_pairs(void* first, void* second, int* count, MPI_Datatype* type) {
  (void)type;
  applied += *count;
  Pair* const out = second;
  for (int i = 0; i < *count; ++i) {
    out[i].value = combined(((Pair*)first)[i].value, out[i].value, rank);
    out[i].number += ((Pair*)first)[i].number;
  }
}

static double contribution(int of, int i) { return 1.0 / (3 * of + 7) + i % 1000 / 11.0; }

/* One rank combines the contributions of so many ranks, from rank 0 on. */
static double expected(int ranks, int i, int by) {
  double value = contribution(0, i);
  for (int r = 1; r < ranks; ++r) value = combined(value, contribution(r, i), by);
  return value;
}

static double input[kMost * 9], output[kMost];

/* The output is elements `first` and so on of the whole vector, of so many ranks. */
static void check(int is_output, int ranks, int first, int count, int by, long long elements) {
  for (int i = 0; i < count && is_output; ++i) {
    EXPECT(output[i] == expected(ranks, first + i, by));
  }
  const long long wanted = rank == by && !is_sum ? elements : 0;
  if (applied != wanted) {
    fprintf(stderr, "rank %d: %lld elements combined, not %lld\n", rank, applied, wanted);
  }
  EXPECT(applied == wanted);
  applied = 0;
}

static void complete(MPI_Request* request, int is_persistent) {
  if (is_persistent) MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (is_persistent) MPI_Request_free(request);
}

#define CALL(name, ...)                                                \
  if (form == 0) {                                                     \
    MPI_##name(__VA_ARGS__, MPI_COMM_WORLD);                           \
  } else if (form == 1) {                                              \
    MPI_I##name(__VA_ARGS__, MPI_COMM_WORLD, &request);                \
    complete(&request, 0);                                             \
  } else {                                                             \
    INIT_##name(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request); \
    complete(&request, 1);                                             \
  }
#define INIT_Reduce PERSISTENT(Reduce)
#define INIT_Allreduce PERSISTENT(Allreduce)
#define INIT_Reduce_scatter_block PERSISTENT(Reduce_scatter_block)
#define INIT_Scan PERSISTENT(Scan)
#define INIT_Exscan PERSISTENT(Exscan)
#define MPI_IReduce MPI_Ireduce
#define MPI_IAllreduce MPI_Iallreduce
#define MPI_IReduce_scatter_block MPI_Ireduce_scatter_block
#define MPI_IScan MPI_Iscan
#define MPI_IExscan MPI_Iexscan

static void call_all(MPI_Op op, int count, int form) {
  MPI_Request request = MPI_REQUEST_NULL;
  const long long others = size - 1;
  for (int root = 0; root<size; root += size> 1 ? size - 1 : 1) {
    CALL(Reduce, input, output, count, MPI_DOUBLE, op, root)
    check(rank == root, size, 0, count, root, others * count);
  }
  CALL(Allreduce, input, output, count, MPI_DOUBLE, op)
  check(1, size, 0, count, 0, others * count);
  CALL(Reduce_scatter_block, input, output, count, MPI_DOUBLE, op)
  check(1, size, rank * count, count, 0, others * count * size);
  CALL(Scan, input, output, count, MPI_DOUBLE, op)
  check(1, rank + 1, 0, count, 0, others * count);
  CALL(Exscan, input, output, count, MPI_DOUBLE, op)
  check(rank > 0, rank, 0, count, 0, size > 2 ? (others - 1) * count : 0);
}

static void set_input(void) {
  for (int i = 0; i < kMost * size; ++i) input[i] = contribution(rank, i);
}

static void operators(void) {
  set_input();
  for (int commutes = 0; commutes < 2; ++commutes) {
    MPI_Op op;
    MPI_Op_create(combine, commutes, &op);
    call_all(op, 1, 0);
    call_all(op, 7, 0);
    call_all(op, kMost, 0);
    MPI_Op_free(&op);
  }
}

static void sums(void) {
  set_input();
  is_sum = 1;
  for (int form = 0; form < 3; ++form) {
    call_all(MPI_SUM, 1, form);
    call_all(MPI_SUM, 7, form);
    call_all(MPI_SUM, kMost, form);
  }
  is_sum = 0;
}

/* A derived type whose extent is longer than its data. */
static void derived(void) {
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {offsetof(Pair, value), offsetof(Pair, number)};
  const MPI_Datatype parts[] = {MPI_DOUBLE, MPI_INT};
  MPI_Datatype made, type;
  MPI_Type_create_struct(2, lengths, places, parts, &made);
  MPI_Type_create_resized(made, 0, sizeof(Pair), &type);
  MPI_Type_commit(&type);
  MPI_Op op;
  MPI_Op_create(combine_pairs, 1, &op);
  Pair own[50], all[50];
  for (int i = 0; i < 50; ++i) {
    own[i].value = contribution(rank, i);
    own[i].number = rank;
  }
  MPI_Allreduce(own, all, 50, type, op, MPI_COMM_WORLD);
  for (int i = 0; i < 50; ++i) {
    EXPECT(all[i].value == expected(size, i, 0));
    EXPECT(all[i].number == size * (size - 1) / 2);
  }
  EXPECT(applied == (rank == 0 ? 50LL * (size - 1) : 0));
  applied = 0;
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  MPI_Type_free(&made);
}

/* In a communicator of the ranks backwards, its rank 0 is another one. */
static void backwards(void) {
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_Op op;
  MPI_Op_create(combine, 1, &op);
  double own = contribution(rank, 3), sum = -1;
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, op, reversed);
  EXPECT(applied == (rank == size - 1 ? size - 1 : 0));
  applied = 0;
  MPI_Op_free(&op);
  MPI_Comm_free(&reversed);
}

static const Scenario all[] = {
    {"operators", operators}, {"sums", sums}, {"derived", derived}, {"backwards", backwards}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  run_scenario(all, sizeof all / sizeof all[0], argc > 1 ? argv[1] : "");
  MPI_Finalize();
  if (rank == 0) puts("fine");
  return 0;
}
