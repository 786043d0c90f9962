/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The header in strict C11, and every function of it once, linked against the installed library and
 * nothing else: what a C programmer sees. Runs as a job of one rank, or under a launcher. Prints
 * the first thing that is wrong and returns 1.
 */
#include <stdio.h>
#include <string.h>
#include <unisono/unisono.h>

static int failures = 0;

static void expect(int truth, const char* what) {
  if (truth) return;
  fprintf(stderr, "conformance: %s is wrong (%s)\n", what, unisono_last_error());
  ++failures;
}

#define OK(call) expect((call) == UNISONO_OK, #call)
#define TRUE(condition) expect((condition), #condition)

static int rank = -1;
static int ranks = 0;

static void add(void* target, const void* left, const void* right, int64_t count,
                unisono_type_t type, void* user) {
  int64_t* sums = target;
  const int64_t* x = left;
  const int64_t* y = right;
  (void)type;
  ++*(int*)user;
  for (int64_t i = 0; i < count; ++i) sums[i] = x[i] + y[i];
}

static void names(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", UNISONO_VERSION_MAJOR, UNISONO_VERSION_MINOR,
           UNISONO_VERSION_PATCH);
  TRUE(strcmp(unisono_version(), version) == 0);
  TRUE(strcmp(unisono_error_name(UNISONO_ERROR_TIMEOUT), "timeout") == 0);
  TRUE(strcmp(unisono_last_error(), "") == 0);
  TRUE(unisono_type_size(UNISONO_COMPLEX128) == 16);
}

static void blocking(unisono_comm_t comm) {
  int64_t mine = rank + 1;
  int64_t sum = 0;
  int64_t all[64];
  int64_t word = rank == 0 ? 42 : 0;
  OK(unisono_barrier(comm));
  OK(unisono_broadcast(&word, 1, UNISONO_INT64, 0, comm));
  TRUE(word == 42);
  OK(unisono_reduce(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, 0, comm));
  TRUE(sum == (rank == 0 ? (int64_t)ranks * (ranks + 1) / 2 : 0));
  OK(unisono_allreduce(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, comm));
  TRUE(sum == (int64_t)ranks * (ranks + 1) / 2);
  sum = mine;
  OK(unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_MAX, comm));
  TRUE(sum == ranks);
  OK(unisono_allgather(&mine, all, 1, UNISONO_INT64, comm));
  TRUE(all[0] == 1 && all[ranks - 1] == ranks);
}

/* The memory of the calls with blocks: one word a rank, of equal or of given counts. */
enum { BLOCK_CALLS = 13 };
static int64_t blocks[64], results[BLOCK_CALLS][64], counts[64], places[64], bytes[64],
    backwards[64];
static unisono_type_t types[64];
static int receives[64];

static void fill_blocks(void) {
  for (int i = 0; i < 64; ++i) {
    blocks[i] = 100 * rank + i;
    counts[i] = 1;
    places[i] = 63 - i;
    receives[i] = i == 0;
    bytes[i] = 8 * i;
    backwards[i] = 8 * places[i];
    types[i] = UNISONO_INT64;
  }
  memset(results, 0xff, sizeof results);
}

static void blocks_are_right(void) {
  const int64_t sums = 100 * (int64_t)ranks * (ranks - 1) / 2;
  const int last = ranks - 1;
  TRUE(results[0][last] == (rank == 0 ? 100 * last : -1));
  TRUE(results[1][0] == 100 * last + rank);
  TRUE(results[2][last] == 100 * last + rank);
  TRUE(results[3][0] == sums + (int64_t)ranks * rank);
  TRUE(results[4][0] == 100 * (int64_t)rank * (rank + 1) / 2);
  TRUE(results[5][0] == (rank == 0 ? -1 : 100 * (int64_t)rank * (rank - 1) / 2));
  TRUE(results[6][63 - last] == 100 * last);
  TRUE(results[7][last] == (rank == 0 ? 100 * last : -1));
  TRUE(results[8][0] == sums + (int64_t)ranks * rank);
  TRUE(results[9][63 - last] == (rank == 0 ? 100 * last : -1));
  TRUE(results[10][0] == 100 * last + 63 - rank);
  TRUE(results[11][last] == 100 * last + 63 - rank);
  TRUE(results[12][63 - last] == 100 * last + rank);
}

static void blocking_blocks(unisono_comm_t comm) {
  const unisono_type_t t = UNISONO_INT64;
  const unisono_op_t sum = UNISONO_SUM;
  fill_blocks();
  OK(unisono_gather(blocks, results[0], 1, t, 0, comm));
  OK(unisono_scatter(blocks, results[1], 1, t, ranks - 1, comm));
  OK(unisono_alltoall(blocks, results[2], 1, t, comm));
  OK(unisono_reduce_scatter_block(blocks, results[3], 1, t, sum, comm));
  OK(unisono_scan(blocks, results[4], 1, t, sum, comm));
  OK(unisono_exscan(blocks, results[5], 1, t, sum, comm));
  OK(unisono_allgatherv(blocks, 1, results[6], counts, places, t, comm));
  OK(unisono_many_to_many(blocks, 1, results[7], counts, NULL, receives, t, comm));
  OK(unisono_reduce_scatter(blocks, results[8], counts, t, sum, comm));
  OK(unisono_gatherv(blocks, 1, results[9], counts, places, t, 0, comm));
  OK(unisono_scatterv(blocks, counts, places, results[10], 1, t, ranks - 1, comm));
  OK(unisono_alltoallv(blocks, counts, places, results[11], counts, NULL, t, comm));
  OK(unisono_alltoallw(blocks, counts, bytes, types, results[12], counts, backwards, types, comm));
  blocks_are_right();
  if (rank == 0) {
    OK(unisono_scatter(results[0], UNISONO_IN_PLACE, 1, t, 0, comm));
  } else {
    OK(unisono_scatter(NULL, results[0], 1, t, 0, comm));
  }
  TRUE(results[0][0] == 100 * rank);
}

static void started_blocks(unisono_comm_t comm) {
  const unisono_type_t t = UNISONO_INT64;
  const unisono_op_t sum = UNISONO_SUM;
  unisono_request_t r[BLOCK_CALLS];
  fill_blocks();
  OK(unisono_gather_start(blocks, results[0], 1, t, 0, comm, &r[0]));
  OK(unisono_scatter_start(blocks, results[1], 1, t, ranks - 1, comm, &r[1]));
  OK(unisono_alltoall_start(blocks, results[2], 1, t, comm, &r[2]));
  OK(unisono_reduce_scatter_block_start(blocks, results[3], 1, t, sum, comm, &r[3]));
  OK(unisono_scan_start(blocks, results[4], 1, t, sum, comm, &r[4]));
  OK(unisono_exscan_start(blocks, results[5], 1, t, sum, comm, &r[5]));
  OK(unisono_allgatherv_start(blocks, 1, results[6], counts, places, t, comm, &r[6]));
  OK(unisono_many_to_many_start(blocks, 1, results[7], counts, NULL, receives, t, comm, &r[7]));
  OK(unisono_reduce_scatter_start(blocks, results[8], counts, t, sum, comm, &r[8]));
  OK(unisono_gatherv_start(blocks, 1, results[9], counts, places, t, 0, comm, &r[9]));
  OK(unisono_scatterv_start(blocks, counts, places, results[10], 1, t, ranks - 1, comm, &r[10]));
  OK(unisono_alltoallv_start(blocks, counts, places, results[11], counts, NULL, t, comm, &r[11]));
  OK(unisono_alltoallw_start(blocks, counts, bytes, types, results[12], counts, backwards, types,
                             comm, &r[12]));
  OK(unisono_wait_all(r, BLOCK_CALLS));
  blocks_are_right();
}

static void planned_blocks(unisono_comm_t comm) {
  const unisono_type_t t = UNISONO_INT64;
  const unisono_op_t sum = UNISONO_SUM;
  unisono_plan_t p[BLOCK_CALLS];
  fill_blocks();
  OK(unisono_gather_plan(blocks, results[0], 1, t, 0, comm, &p[0]));
  OK(unisono_scatter_plan(blocks, results[1], 1, t, ranks - 1, comm, &p[1]));
  OK(unisono_alltoall_plan(blocks, results[2], 1, t, comm, &p[2]));
  OK(unisono_reduce_scatter_block_plan(blocks, results[3], 1, t, sum, comm, &p[3]));
  OK(unisono_scan_plan(blocks, results[4], 1, t, sum, comm, &p[4]));
  OK(unisono_exscan_plan(blocks, results[5], 1, t, sum, comm, &p[5]));
  OK(unisono_allgatherv_plan(blocks, 1, results[6], counts, places, t, comm, &p[6]));
  OK(unisono_many_to_many_plan(blocks, 1, results[7], counts, NULL, receives, t, comm, &p[7]));
  OK(unisono_reduce_scatter_plan(blocks, results[8], counts, t, sum, comm, &p[8]));
  OK(unisono_gatherv_plan(blocks, 1, results[9], counts, places, t, 0, comm, &p[9]));
  OK(unisono_scatterv_plan(blocks, counts, places, results[10], 1, t, ranks - 1, comm, &p[10]));
  OK(unisono_alltoallv_plan(blocks, counts, places, results[11], counts, NULL, t, comm, &p[11]));
  OK(unisono_alltoallw_plan(blocks, counts, bytes, types, results[12], counts, backwards, types,
                            comm, &p[12]));
  for (int i = 0; i < BLOCK_CALLS; ++i) OK(unisono_plan_start(p[i]));
  for (int i = 0; i < BLOCK_CALLS; ++i) {
    OK(unisono_plan_wait(p[i]));
    OK(unisono_plan_free(p[i]));
  }
  blocks_are_right();
}

static void split_phase(unisono_comm_t comm) {
  int64_t mine = rank + 1;
  int64_t word = rank == 0 ? 42 : 0;
  int64_t reduced = 0;
  int64_t sum = 0;
  int64_t all[64];
  unisono_request_t requests[5];
  int index = -1;
  int done = 0;
  OK(unisono_barrier_start(comm, &requests[0]));
  OK(unisono_broadcast_start(&word, 1, UNISONO_INT64, 0, comm, &requests[1]));
  OK(unisono_reduce_start(&mine, &reduced, 1, UNISONO_INT64, UNISONO_SUM, 0, comm, &requests[2]));
  OK(unisono_allreduce_start(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, comm, &requests[3]));
  OK(unisono_allgather_start(&mine, all, 1, UNISONO_INT64, comm, &requests[4]));
  OK(unisono_wait_any(requests, 5, &index));
  TRUE(index >= 0 && index < 5 && requests[index] == NULL);
  if (requests[3] != NULL) OK(unisono_wait(&requests[3]));
  while (requests[4] != NULL) OK(unisono_test(&requests[4], &done));
  OK(unisono_wait_all(requests, 5));
  TRUE(word == 42);
  TRUE(sum == (int64_t)ranks * (ranks + 1) / 2);
  TRUE(all[ranks - 1] == ranks);
}

static void persistent(unisono_comm_t comm) {
  int64_t mine = rank + 1;
  int64_t word = 7;
  int64_t reduced = 0;
  int64_t sum = 0;
  int64_t all[64];
  unisono_plan_t plans[5];
  OK(unisono_barrier_plan(comm, &plans[0]));
  OK(unisono_broadcast_plan(&word, 1, UNISONO_INT64, 0, comm, &plans[1]));
  OK(unisono_reduce_plan(&mine, &reduced, 1, UNISONO_INT64, UNISONO_SUM, 0, comm, &plans[2]));
  OK(unisono_allreduce_plan(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, comm, &plans[3]));
  OK(unisono_allgather_plan(&mine, all, 1, UNISONO_INT64, comm, &plans[4]));
  for (int i = 0; i < 5; ++i) {
    int done = 0;
    OK(unisono_plan_start(plans[i]));
    OK(unisono_plan_test(plans[i], &done));
    if (!done) OK(unisono_plan_wait(plans[i]));
    OK(unisono_plan_free(plans[i]));
  }
  TRUE(sum == (int64_t)ranks * (ranks + 1) / 2);
}

static void communicators(unisono_comm_t comm) {
  unisono_comm_info_t info;
  unisono_comm_t copy = NULL;
  unisono_comm_t part = NULL;
  unisono_comm_t first = NULL;
  unisono_request_t request = NULL;
  const int zero = 0;
  OK(unisono_comm_dup(comm, &copy));
  OK(unisono_comm_split(comm, 0, -rank, &part));
  OK(unisono_comm_from_list(comm, &zero, 1, &first));
  TRUE((first != NULL) == (rank == 0));
  OK(unisono_barrier(part));
  info.size = sizeof info;
  OK(unisono_comm_info(part, &info));
  TRUE(info.operations == 1);
  if (rank == 0) { /* the others have no business in `copy`, so this fails nothing of theirs */
    OK(unisono_barrier_start(copy, &request));
    OK(unisono_cancel(&request));
  }
  OK(unisono_barrier(comm)); /* a member that ends `copy` before would end the operation first */
  OK(unisono_comm_free(copy));
  OK(unisono_comm_free(part));
  if (first != NULL) OK(unisono_comm_free(first));
}

static void survivors(unisono_comm_t comm) {
  unisono_comm_t copy = NULL;
  unisono_comm_t rest = NULL;
  int holds = -1;
  OK(unisono_comm_dup(comm, &copy));
  OK(unisono_shrink(copy, &rest)); /* nobody is lost */
  OK(unisono_publish(rest, 5));
  OK(unisono_barrier(rest));
  OK(unisono_query(rest, UNISONO_GREATER_EQUAL, 5, &holds));
  TRUE(holds == 1);
  OK(unisono_barrier(rest));
  OK(unisono_comm_free(copy));
  OK(unisono_comm_free(rest));
}

static void user_defined(unisono_comm_t comm) {
  unisono_type_t type = -1;
  unisono_op_t op = -1;
  int calls = 0;
  int64_t mine = 1;
  int64_t sum = 0;
  OK(unisono_type_create(8, 8, &type));
  TRUE(unisono_type_size(type) == 8);
  OK(unisono_op_create(add, 1, &calls, &op));
  OK(unisono_allreduce(&mine, &sum, 1, type, op, comm));
  TRUE(sum == ranks);
}

static void a_job_of_one_thread(void) {
  unisono_threads_t threads = NULL;
  unisono_comm_t world = NULL;
  OK(unisono_threads_create(1, &threads));
  OK(unisono_init_thread(threads, 0, &world));
  OK(unisono_barrier(world));
  OK(unisono_finalize(world));
  OK(unisono_threads_free(threads));
}

int main(void) {
  unisono_comm_t world = NULL;
  names();
  OK(unisono_init(&world));
  OK(unisono_comm_rank(world, &rank));
  OK(unisono_comm_size(world, &ranks));
  if (failures > 0 || ranks > 64) return 1;
  blocking(world);
  split_phase(world);
  persistent(world);
  blocking_blocks(world);
  started_blocks(world);
  planned_blocks(world);
  communicators(world);
  survivors(world);
  user_defined(world);
  OK(unisono_finalize(world));
  a_job_of_one_thread();
  if (failures == 0) printf("rank %d of %d conforms\n", rank, ranks);
  return failures == 0 ? 0 : 1;
}
