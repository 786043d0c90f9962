/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Corners of the MPI standard in programs of a few lines each, by name: edge_cases NAME. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "persistent.h"
#include "scenario.h"

static int sum_of_ranks(MPI_Comm comm) {
  int own, sum = -1;
  MPI_Comm_rank(comm, &own);
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

/* An int with a gap of the same length behind it. */
static MPI_Datatype gapped_int(void) {
  MPI_Datatype made;
  MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &made);
  MPI_Type_commit(&made);
  return made;
}

static void fill(int* all, int count, int value) {
  for (int i = 0; i < count; ++i) all[i] = value;
}

/* Each rank describes the same elements by a type of its own. */
static void signatures(void) {
  enum { kCount = 6 };
  int own[2 * kCount], word[2 * kCount];
  int* const all = malloc((size_t)(kCount * size) * sizeof(int));
  MPI_Datatype gapped = gapped_int(), whole;
  MPI_Type_contiguous(kCount, MPI_INT, &whole);
  MPI_Type_commit(&whole);
  const int step = rank % 3 == 1 ? 2 : 1;
  const MPI_Datatype type = rank % 3 == 0 ? MPI_INT : rank % 3 == 1 ? gapped : whole;
  const int count = rank % 3 == 2 ? 1 : kCount;
  for (int root = 0; root < size; ++root) {
    fill(word, 2 * kCount, -1);
    for (int i = 0; rank == root && i < kCount; ++i) word[step * i] = 100 * root + i;
    MPI_Bcast(word, count, type, root, MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) EXPECT(word[step * i] == 100 * root + i);
    for (int i = 0; step == 2 && i < kCount; ++i) EXPECT(word[2 * i + 1] == -1);

    fill(own, 2 * kCount, -1);
    for (int i = 0; i < kCount; ++i) own[step * i] = 100 * rank + i;
    MPI_Gather(own, count, type, all, kCount, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < kCount * size; ++i) {
      EXPECT(all[i] == 100 * (i / kCount) + i % kCount);
    }
    MPI_Scatter(all, 1, whole, word, count, type, root, MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) EXPECT(word[step * i] == 100 * rank + i);
  }
  MPI_Allgather(own, count, type, all, 1, whole, MPI_COMM_WORLD);
  for (int i = 0; i < kCount * size; ++i) EXPECT(all[i] == 100 * (i / kCount) + i % kCount);
  MPI_Type_free(&whole);
  MPI_Type_free(&gapped);
  free(all);
}

/* Ranks that give or get nothing pass null pointers; counts differ from rank to rank. */
static void uneven(void) {
  int* const counts = calloc((size_t)size, sizeof(int));
  int* const places = calloc((size_t)size, sizeof(int));
  int* const all = malloc((size_t)(size * size) * sizeof(int));
  int* const own = malloc((size_t)size * sizeof(int));
  int total = 0;
  for (int r = 0; r < size; ++r) counts[r] = r % 2 == 0 ? 0 : r, places[r] = total, total += r;
  fill(own, size, rank);
  for (int root = 0; root < size; ++root) {
    const int is_root = rank == root;
    fill(all, size * size, -1);
    MPI_Gatherv(counts[rank] == 0 ? NULL : own, counts[rank], MPI_INT, is_root ? all : NULL,
                is_root ? counts : NULL, is_root ? places : NULL, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; is_root && r < size; ++r) {
      for (int i = 0; i < counts[r]; ++i) EXPECT(all[places[r] + i] == r);
    }
    fill(own, size, -1);
    MPI_Scatterv(is_root ? all : NULL, is_root ? counts : NULL, is_root ? places : NULL, MPI_INT,
                 counts[rank] == 0 ? NULL : own, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; ++i) EXPECT(own[i] == rank);
    fill(own, size, rank);
  }
  MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  free(counts);
  free(places);
  free(all);
  free(own);
}

/* MPI_IN_PLACE at the root or everywhere, in a type with gaps, whose bytes stay. */
static void in_place(void) {
  int* const all = malloc((size_t)(2 * size) * sizeof(int));
  int own[2];
  MPI_Datatype gapped = gapped_int();
  for (int root = 0; root < size; ++root) {
    fill(all, 2 * size, -7);
    own[0] = all[2 * rank] = rank + 10;
    const int is_root = rank == root;
    MPI_Gather(is_root ? MPI_IN_PLACE : own, 1, MPI_INT, all, 1, gapped, root, MPI_COMM_WORLD);
    for (int r = 0; is_root && r < size; ++r) EXPECT(all[2 * r] == r + 10 && all[2 * r + 1] == -7);
    own[0] = -1;
    MPI_Scatter(all, 1, gapped, is_root ? MPI_IN_PLACE : own, 1, MPI_INT, root, MPI_COMM_WORLD);
    EXPECT(own[0] == (is_root ? -1 : rank + 10));
  }
  fill(all, 2 * size, -7);
  all[2 * rank] = rank + 10;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, gapped, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(all[2 * r] == r + 10 && all[2 * r + 1] == -7);
  for (int r = 0; r < size; ++r) all[2 * r] = 100 * rank + r;
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, gapped, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(all[2 * r] == 100 * r + rank && all[2 * r + 1] == -7);
  MPI_Type_free(&gapped);
  free(all);
}

/* One rank alone has a type of absolute addresses. */
static void bottom(void) {
  int parts[2] = {10 * rank, 10 * rank + 1}, lengths[2] = {1, 1};
  int* const all = malloc((size_t)(2 * size) * sizeof(int));
  MPI_Aint places[2];
  MPI_Datatype type;
  MPI_Get_address(&parts[0], &places[0]);
  MPI_Get_address(&parts[1], &places[1]);
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int one = 0; one < size; ++one) {
    const int is_one = rank == one;
    MPI_Allgather(is_one ? MPI_BOTTOM : parts, is_one ? 1 : 2, is_one ? type : MPI_INT, all, 2,
                  MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * size; ++i) EXPECT(all[i] == 10 * (i / 2) + i % 2);
    fill(parts, 2, -1);
    MPI_Request request;
    MPI_Iscatter(all, 2, MPI_INT, is_one ? MPI_BOTTOM : parts, is_one ? 1 : 2,
                 is_one ? type : MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(parts[0] == 10 * rank && parts[1] == 10 * rank + 1);
  }
  MPI_Type_free(&type);
  free(all);
}

static void add(void* in, void* into, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)into)[2 * i] += ((int*)in)[2 * i];
}
/* The program frees the operator and the type right after the call that uses them. */
static void freed_early(void) {
  for (int round = 0; round < 20; ++round) {
    int in[4] = {rank, -1, round, -1}, out[4] = {-7, -7, -7, -7}, again[4] = {-7, -7, -7, -7};
    MPI_Op op;
    MPI_Request request;
    MPI_Datatype gapped = gapped_int();
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(in, again, 2, gapped, op, MPI_COMM_WORLD);
    MPI_Iallreduce(in, out, 2, gapped, op, MPI_COMM_WORLD, &request);
    MPI_Op_free(&op);
    MPI_Type_free(&gapped);
    EXPECT(op == MPI_OP_NULL && gapped == MPI_DATATYPE_NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(again[0] == size * (size - 1) / 2 && again[2] == size * round);
    EXPECT(again[1] == -7 && again[3] == -7);
    EXPECT(out[0] == again[0] && out[2] == again[2]);
  }
}

static void last_of(void* in, void* into, int* count, MPI_Datatype* type) {
  (void)in, (void)into, (void)count, (void)type; /* the right operand is the result */
}
/* Each half of the ranks meets operators and types in an order of its own first. */
static void orders(void) {
  MPI_Op ops[2];
  MPI_Datatype types[2];
  MPI_Comm part;
  MPI_Op_create(last_of, 0, &ops[0]);
  MPI_Op_create(last_of, 1, &ops[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Type_contiguous(3 + 4 * i, MPI_INT, &types[i]);
    MPI_Type_commit(&types[i]);
  }
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
  int in[8], out[8];
  fill(in, 8, rank);
  for (int i = 0; i < 2; ++i) {
    const int mine = (i + rank) % 2;
    MPI_Allreduce(in, out, 1, types[mine], ops[mine], part);
    EXPECT(out[0] >= 0 && out[0] < size);
  }
  for (int i = 0; i < 4; ++i) {
    MPI_Allreduce(in, out, 1, types[i / 2], ops[i % 2], MPI_COMM_WORLD);
    EXPECT(i % 2 == 1 || out[0] == size - 1);
  }
  MPI_Comm_free(&part);
  for (int i = 0; i < 2; ++i) {
    MPI_Type_free(&types[i]);
    MPI_Op_free(&ops[i]);
  }
}

/* Null requests among others, and a wait for nothing: its status is the empty one. */
static void null_requests(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  int sum = -1, index = 0, done = 0, flag = 0, count = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 10; ++round) {
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(3, requests, statuses);
    EXPECT(sum == size * (size - 1) / 2 && requests[1] == MPI_REQUEST_NULL);
    for (int i = 0; i < 3; i += 2) {
      MPI_Get_count(&statuses[i], MPI_INT, &count);
      EXPECT(count == 0 && statuses[i].MPI_SOURCE == MPI_ANY_SOURCE);
      EXPECT(statuses[i].MPI_TAG == MPI_ANY_TAG);
    }
    MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    EXPECT(index == MPI_UNDEFINED);
    MPI_Testsome(3, requests, &done, &index, MPI_STATUSES_IGNORE);
    EXPECT(done == MPI_UNDEFINED);
    MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    EXPECT(flag);
    MPI_Wait(&requests[1], &statuses[1]);
    EXPECT(statuses[1].MPI_SOURCE == MPI_ANY_SOURCE);
  }
}

static int handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}
/* Rank 1's call differs. All ranks get an error of their handler, at the latest in the next call;
 * none waits. From `invalid_from` on, its argument is one that the MPI itself reports. */
static void run_wrong(int first, int end, int invalid_from) {
  MPI_Errhandler mine;
  MPI_Comm_create_errhandler(handle, &mine);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
  const int odd = rank == 1;
  for (int which = first; which < end; ++which) {
    int in[64] = {0}, out[64], code = MPI_SUCCESS;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, mine);
    handled = 0;
    if (which == 0) code = MPI_Reduce(in, out, 4, MPI_INT, MPI_SUM, odd, comm);
    if (which == 1) code = MPI_Gather(in, 4, MPI_INT, out, 4, MPI_INT, odd, comm);
    if (which == 2) code = MPI_Scatter(in, 4, MPI_INT, out, 4, MPI_INT, odd, comm);
    if (which == 3) code = MPI_Scan(in, out, odd ? 3 : 4, MPI_INT, MPI_SUM, comm);
    if (which == 4) code = MPI_Allreduce(in, out, odd ? -1 : 4, MPI_INT, MPI_SUM, comm);
    if (which == 5) code = MPI_Bcast(in, 4, MPI_INT, odd ? size : 0, comm);
    if (which == 6) code = MPI_Allreduce(in, out, 4, MPI_INT, odd ? MPI_OP_NULL : MPI_SUM, comm);
    if (odd && which >= invalid_from) EXPECT(code != MPI_SUCCESS);
    if (code == MPI_SUCCESS || (odd && which >= invalid_from)) code = MPI_Barrier(comm);
    EXPECT(code != MPI_SUCCESS && handled >= 1);
    MPI_Comm_free(&comm);
  }
  MPI_Errhandler_free(&mine);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == size * (size - 1) / 2);
}
static void wrong(void) { run_wrong(0, 4, 4); }
static void invalid_at_one(void) { run_wrong(4, 7, 4); }

/* No more memory for this process than it has, but for a few MiB; or again as much as it likes. */
static void limit_memory(int limits) {
  struct rlimit limit;
  EXPECT(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  if (limits) {
    unsigned long pages = 0;
    FILE* const sizes = fopen("/proc/self/statm", "r");
    EXPECT(sizes != NULL && fscanf(sizes, "%lu", &pages) == 1);
    fclose(sizes);
    limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (4UL << 20);
  }
  EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void first_wins(void* in, void* both, int* count, MPI_Datatype* type) {
  memcpy(both, in, (size_t)*count * sizeof(int));
  (void)type;
}

/* Rank 1 cannot copy its elements: an error at each rank, and at none a wait. */
static void no_memory(void) {
  enum { kCount = 8 << 20 };
  char* const in = calloc(2 * kCount + 1, sizeof(int));
  char* const out = calloc(2 * kCount + 1, sizeof(int));
  EXPECT(in != NULL && out != NULL);
  MPI_Datatype spread;
  MPI_Type_vector(kCount, 1, 2, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  MPI_Op op;
  MPI_Op_create(first_wins, 0, &op);
  const int sum = sum_of_ranks(MPI_COMM_WORLD);
  for (int which = 0; which < 3; ++which) {
    int code = MPI_SUCCESS, error_class = 0;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    EXPECT(sum_of_ranks(comm) == sum);
    limit_memory(rank == 1);
    if (which == 0) code = MPI_Bcast(in, 1, spread, 0, comm);
    /* At addresses that an int may not have elsewhere. */
    if (which == 1) code = MPI_Allreduce(in + 1, out + 1, kCount, MPI_INT, op, comm);
    if (which == 2) {
      code = MPI_Ibcast(in, 1, spread, 0, comm, &request);
      if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    limit_memory(0);
    /* The root of a broadcast may not wait for the others. */
    if (code == MPI_SUCCESS && rank != 1) code = MPI_Barrier(comm);
    EXPECT(code != MPI_SUCCESS);
    MPI_Error_class(code, &error_class);
    EXPECT(error_class == (rank == 1 ? MPI_ERR_NO_MEM : MPI_ERR_OTHER));
    MPI_Comm_free(&comm);
  }
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == sum);
  MPI_Op_free(&op);
  MPI_Type_free(&spread);
  free(in);
  free(out);
}

/* Blocking and nonblocking collectives on several communicators. */
static void plain(void) {
  MPI_Comm part;
  MPI_Request request;
  int sum = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(sum == size * (size - 1) / 2);
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &part);
  EXPECT(sum_of_ranks(part) == (rank == size - 1 ? 0 : (size - 1) * (size - 2) / 2));
  MPI_Comm_free(&part);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == sum);
}

/* A rank's block of the output is its input, and the whole output is. MPI forbids that, some MPIs
 * do not mind. */
static void aliased(void) {
  enum { kBlock = 3, kMost = 16 };
  int all[kMost * kBlock], counts[kMost], places[kMost];
  EXPECT(size <= kMost);
  for (int r = 0; r < size; ++r) {
    counts[r] = kBlock;
    places[r] = r * kBlock;
  }
  for (int way = 0; way < 8; ++way) {
    const int at = way % 2 == 0 ? rank * kBlock : 0;
    const int is_gather = way / 2 == 2;
    for (int i = 0; i < size * kBlock; ++i) all[i] = -1;
    for (int i = 0; i < kBlock; ++i) all[at + i] = 10 * rank + i;
    if (way / 2 == 0)
      MPI_Allgather(&all[at], kBlock, MPI_INT, all, kBlock, MPI_INT, MPI_COMM_WORLD);
    if (way / 2 == 1)
      MPI_Allgatherv(&all[at], kBlock, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    if (is_gather) MPI_Gather(&all[at], kBlock, MPI_INT, all, kBlock, MPI_INT, 0, MPI_COMM_WORLD);
    if (way / 2 == 3) {
      for (int i = 0; i < size * kBlock; ++i) all[i] = 10 * rank + i % kBlock;
      MPI_Alltoallv(all, counts, places, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    }
    for (int i = 0; i < size * kBlock && (rank == 0 || !is_gather); ++i)
      EXPECT(all[i] == 10 * (i / kBlock) + i % kBlock);
  }
}

/* MPI_IN_PLACE for the wrong buffer: at all ranks, the host MPI finds that. */
static void misplaced(void) {
  int values[32] = {0};
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* which Open MPI calls */
  const int sum = sum_of_ranks(comm);
  EXPECT(MPI_Allreduce(values, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
  EXPECT(MPI_Scan(values, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
  EXPECT(MPI_Allgather(values, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm) != MPI_SUCCESS);
  EXPECT(MPI_Alltoall(values, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm) != MPI_SUCCESS);
  EXPECT(sum_of_ranks(comm) == sum);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

/* One look after a barrier finds a message that was sent before it. */
static void looks(void) {
  enum { kMessages = 20 };
  int words[kMessages] = {0}, flag = 0;
  MPI_Request requests[kMessages];
  sum_of_ranks(MPI_COMM_WORLD);
  for (int way = 0; way < 3; ++way) {
    for (int i = 0; rank == 0 && way > 0 && i < kMessages; ++i)
      MPI_Irecv(&words[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 1 && i < kMessages; ++i) MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) continue;
    if (way == 0) MPI_Iprobe(1, kMessages - 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (way == 1) MPI_Test(&requests[kMessages - 1], &flag, MPI_STATUS_IGNORE);
    if (way == 2) MPI_Testall(kMessages, requests, &flag, MPI_STATUSES_IGNORE);
    EXPECT(flag);
    if (way == 1) MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; way == 0 && i < kMessages; ++i)
      MPI_Recv(&words[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kMessages; ++i) EXPECT(words[i] == i);
  }
}

/* MPI 4.1's functions on several requests let collectives go on. */
static void asked_together(void) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0)
  for (int way = 0; way < 3; ++way) {
    int sums[2] = {-1, -1}, flag = 0, count = 0, indices[3];
    MPI_Request requests[3];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iallreduce(&rank, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Allreduce_init(&rank, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[2]);
    MPI_Start(&requests[2]);
    while (way == 0 && !flag) MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE);
    while (way == 1 && !flag)
      MPI_Request_get_status_any(3, requests, &count, &flag, MPI_STATUS_IGNORE);
    while (way == 2 && count == 0)
      MPI_Request_get_status_some(3, requests, &count, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    EXPECT(sums[0] == size * (size - 1) / 2 && sums[1] == sums[0]);
    MPI_Request_free(&requests[2]);
  }
#endif
}

/* A message that fails beside collectives: each request has its status. */
static void truncated(void) {
  int sum = -1, one = 0, code = 0, error_class = 0;
  const int four[4] = {1, 2, 3, 4};
  MPI_Comm comm;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of waits, in MPICH */
  sum_of_ranks(comm);
  MPI_Irecv(&one, 1, MPI_INT, (rank + size - 1) % size, 9, comm, &requests[1]);
  MPI_Barrier(comm);
  MPI_Send(four, 4, MPI_INT, (rank + 1) % size, 9, comm);
  MPI_Barrier(comm);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
  MPI_Ibarrier(comm, &requests[2]);
  code = MPI_Waitall(3, requests, statuses);
  MPI_Error_class(code, &error_class);
  EXPECT(error_class == MPI_ERR_IN_STATUS);
  MPI_Error_class(statuses[1].MPI_ERROR, &error_class);
  EXPECT(error_class == MPI_ERR_TRUNCATE);
  for (int i = 0; i < 3; i += 2) {
    MPI_Error_class(statuses[i].MPI_ERROR, &error_class);
    EXPECT(error_class == MPI_SUCCESS || error_class == MPI_ERR_PENDING);
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  EXPECT(sum == size * (size - 1) / 2);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

/* A type that is not committed, or elements without a buffer: an error of the MPI, after which the
 * communicator is as good as before. */
static void not_committed(void) {
  MPI_Comm comm;
  MPI_Datatype type;
  int class = 0, values[2] = {rank, rank};
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
  MPI_Type_contiguous(2, MPI_INT, &type);
  for (int root = 0; root < size; ++root) {
    MPI_Error_class(MPI_Bcast(values, 1, type, root, comm), &class);
    EXPECT(class == MPI_ERR_TYPE);
    EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
  }
#ifdef MPICH_VERSION /* others read the null buffer */
  MPI_Error_class(MPI_Bcast(NULL, 1, MPI_INT, 0, comm), &class);
  EXPECT(class == MPI_ERR_BUFFER);
  MPI_Error_class(MPI_Allreduce(values, NULL, 1, MPI_INT, MPI_SUM, comm), &class);
  EXPECT(class == MPI_ERR_BUFFER);
#endif
  MPI_Type_commit(&type);
  EXPECT(MPI_Bcast(values, 1, type, size - 1, comm) == MPI_SUCCESS && values[1] == size - 1);
  EXPECT(sum_of_ranks(comm) == size * (size - 1) / 2);
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}

/* Blocks to send and to receive lie between each other, and no memory between two of them. */
static void far_blocks(void) {
  enum { kInts = 8, kMost = 16, kReceived = 512 };
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const pages =
      (char*)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
  EXPECT(size <= kMost);
  int* const ints = (int*)pages;
  int counts[kMost], from[kMost], to[kMost];
  for (int r = 0; r < size; ++r) {
    counts[r] = kInts;
    from[r] = (r % 2) * 2 * (int)(page / sizeof(int)) + r * kInts;
    to[r] = from[r] + kReceived;
    for (int i = 0; i < kInts; ++i) ints[from[r] + i] = 1000 * rank + 10 * r + i;
  }
  for (int round = 0; round < 3; ++round) {
    MPI_Alltoallv(ints, counts, from, MPI_INT, ints, counts, to, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) {
      for (int i = 0; i < kInts; ++i) EXPECT(ints[to[r] + i] == 1000 * r + 10 * rank + i);
      memset(&ints[to[r]], 0, kInts * sizeof(int));
    }
  }
  munmap(pages, 3 * page);
}

/* Places whose blocks share ints, which MPI does not allow and MPIs take. A shared int comes from
 * one of both blocks. */
enum { kSharingInts = 4, kMostSharing = 16, kEach = 1000 };
static void expect_shared(const int* ints, const int* places, int step) {
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < kSharingInts; ++i) {
      const int found = ints[places[r] + i];
      int fits = found == kEach * r + i;
      for (int other = 0; other < size; ++other) {
        const int at = places[r] + i - places[other];
        fits |= at >= 0 && at < kSharingInts && found == kEach * other + at;
      }
      EXPECT(fits);
      EXPECT(step < kSharingInts ? i < 1 || i > 2 || found == kEach * r + i
                                 : found == kEach * r + i);
    }
  }
}
static void shared_places(void) {
  enum { kAll = kSharingInts * kMostSharing };
  int counts[kMostSharing], places[kMostSharing], sent[kMostSharing], bytes[kMostSharing];
  int own[kSharingInts], copies[kAll], ints[kAll];
  MPI_Datatype types[kMostSharing];
  MPI_Request request;
  EXPECT(size <= kMostSharing);
  /* All ranks share but the odd ones; places go up or down. */
  const int step = rank % 2 == 1 ? kSharingInts : 3;
  for (int turn = 0; turn < 2; ++turn) {
    for (int r = 0; r < size; ++r) {
      counts[r] = kSharingInts, sent[r] = kSharingInts * r, types[r] = MPI_INT;
      places[r] = step * (turn == 0 ? r : size - 1 - r);
    }
    for (int i = 0; i < kSharingInts; ++i) own[i] = kEach * rank + i;
    for (int i = 0; i < kAll; ++i) copies[i] = kEach * rank + i % kSharingInts;
    memset(ints, -1, sizeof ints);
    MPI_Allgatherv(own, kSharingInts, MPI_INT, ints, counts, places, MPI_INT, MPI_COMM_WORLD);
    expect_shared(ints, places, step);
    memset(ints, -1, sizeof ints);
    MPI_Iallgatherv(own, kSharingInts, MPI_INT, ints, counts, places, MPI_INT, MPI_COMM_WORLD,
                    &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_shared(ints, places, step);
    for (int root = 0; root < size; ++root) {
      memset(ints, -1, sizeof ints);
      MPI_Gatherv(own, kSharingInts, MPI_INT, ints, counts, places, MPI_INT, root, MPI_COMM_WORLD);
      if (rank == root) expect_shared(ints, places, step);
    }
    memset(ints, -1, sizeof ints);
    MPI_Alltoallv(copies, counts, sent, MPI_INT, ints, counts, places, MPI_INT, MPI_COMM_WORLD);
    expect_shared(ints, places, step);
    for (int r = 0; r < size; ++r) {
      sent[r] *= (int)sizeof(int);
      bytes[r] = places[r] * (int)sizeof(int);
    }
    memset(ints, -1, sizeof ints);
    MPI_Alltoallw(copies, counts, sent, types, ints, counts, bytes, types, MPI_COMM_WORLD);
    expect_shared(ints, places, step);
  }
}

/* Blocks of elements without a buffer, which some MPIs refuse. Each of the three forms does. */
#define EXPECT_REFUSED(name, nonblocking, ...)                                                  \
  do {                                                                                          \
    MPI_Request request = MPI_REQUEST_NULL;                                                     \
    EXPECT(class_of(MPI_##name(__VA_ARGS__)) == MPI_ERR_BUFFER);                                \
    EXPECT(class_of(MPI_##nonblocking(__VA_ARGS__, &request)) == MPI_ERR_BUFFER);               \
    EXPECT(class_of(PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, &request)) == MPI_ERR_BUFFER); \
  } while (0)
static void no_buffer(void) {
  enum { kMost = 16 };
  int ones[kMost], places[kMost], in[kMost], out[kMost], sum = -1;
  MPI_Comm comm;
  EXPECT(size <= kMost);
  for (int r = 0; r < size; ++r) ones[r] = 1, places[r] = in[r] = r;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Barrier(comm);
  EXPECT_REFUSED(Allgatherv, Iallgatherv, in, 1, MPI_INT, NULL, ones, places, MPI_INT, comm);
  EXPECT_REFUSED(Alltoallv, Ialltoallv, in, ones, places, MPI_INT, NULL, ones, places, MPI_INT,
                 comm);
  EXPECT_REFUSED(Alltoallv, Ialltoallv, NULL, ones, places, MPI_INT, out, ones, places, MPI_INT,
                 comm);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  EXPECT(sum == size * (size - 1) / 2);
  MPI_Comm_free(&comm);
}

static const Scenario all[] = {{"aliased", aliased},
                               {"far_blocks", far_blocks},
                               {"misplaced", misplaced},
                               {"looks", looks},
                               {"asked_together", asked_together},
                               {"truncated", truncated},
                               {"signatures", signatures},
                               {"uneven", uneven},
                               {"in_place", in_place},
                               {"bottom", bottom},
                               {"freed_early", freed_early},
                               {"orders", orders},
                               {"null_requests", null_requests},
                               {"wrong", wrong},
                               {"invalid_at_one", invalid_at_one},
                               {"no_buffer", no_buffer},
                               {"no_memory", no_memory},
                               {"shared_places", shared_places},
                               {"plain", plain},
                               {"not_committed", not_committed}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}
