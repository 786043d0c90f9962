/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions with large counts (MPI 4): blocks that lie beyond 2^31 elements from the buffer's
 * start, in memory of which only the used pages exist. Prints "fine"; "none" if the MPI has no such
 * functions. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "scenario.h"

#if MPI_VERSION >= 4

enum { kCount = 5 };
static const MPI_Aint kApart = (MPI_Aint)3 << 30; /* bytes between blocks */

static unsigned char value(int from, int to, int i) {
  return (unsigned char)(from * 31 + to * 7 + i + 1);
}

static unsigned char* memory(void) {
  const size_t bytes = (size_t)size * (size_t)kApart + kCount;
  unsigned char* const start =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT(start != MAP_FAILED);
  return start;
}

static void finish(MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

/* Blocks that lie far apart. `form`: blocking, nonblocking, persistent. */
static void far_apart(int form) {
  unsigned char* const far = memory();
  unsigned char* const sent = memory();
  unsigned char near[kCount];
  MPI_Count* const counts = malloc((size_t)size * sizeof *counts);
  MPI_Aint* const places = malloc((size_t)size * sizeof *places);
  MPI_Request request;
  for (int r = 0; r < size; ++r) {
    counts[r] = kCount;
    places[r] = r * kApart;
    for (int i = 0; i < kCount; ++i) sent[places[r] + i] = value(rank, r, i);
  }
  for (int i = 0; i < kCount; ++i) near[i] = value(rank, 0, i);
  if (form == 0) {
    MPI_Allgatherv_c(near, kCount, MPI_BYTE, far, counts, places, MPI_BYTE, MPI_COMM_WORLD);
  } else if (form == 1) {
    MPI_Iallgatherv_c(near, kCount, MPI_BYTE, far, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                      &request);
    finish(&request);
  } else {
    MPI_Allgatherv_init_c(near, kCount, MPI_BYTE, far, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &request);
    MPI_Start(&request);
    finish(&request);
    MPI_Request_free(&request);
  }
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < kCount; ++i) EXPECT(far[places[r] + i] == value(r, 0, i));
  }
  if (form == 0) {
    MPI_Alltoallv_c(sent, counts, places, MPI_BYTE, far, counts, places, MPI_BYTE, MPI_COMM_WORLD);
  } else if (form == 1) {
    MPI_Ialltoallv_c(sent, counts, places, MPI_BYTE, far, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                     &request);
    finish(&request);
  } else {
    MPI_Alltoallv_init_c(sent, counts, places, MPI_BYTE, far, counts, places, MPI_BYTE,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    finish(&request);
    MPI_Request_free(&request);
  }
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < kCount; ++i) EXPECT(far[places[r] + i] == value(r, rank, i));
  }
  munmap(far, (size_t)size * (size_t)kApart + kCount);
  munmap(sent, (size_t)size * (size_t)kApart + kCount);
  free(counts);
  free(places);
}

/* Each other function, with counts that need no 8 bytes. */
static void small(void) {
  int own = rank + 1, result = -1, whole[64] = {0}, many[64], more[64];
  MPI_Count counts[64];
  MPI_Aint places[64], bytes[64];
  MPI_Datatype types[64];
  const int sum = size * (size + 1) / 2;
  for (int r = 0; r < size; ++r) {
    many[r] = 10 * rank + r;
    counts[r] = 1;
    places[r] = r;
    bytes[r] = r * (MPI_Aint)sizeof(int);
    types[r] = MPI_INT;
  }
  MPI_Allreduce_c(&own, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(result == sum);
  MPI_Reduce_c(&own, &result, 1, MPI_INT, MPI_MAX, size - 1, MPI_COMM_WORLD);
  EXPECT(rank < size - 1 || result == size);
  MPI_Scan_c(&own, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(result == own * (own + 1) / 2);
  MPI_Exscan_c(&own, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(rank == 0 || result == rank * own / 2);
  MPI_Reduce_scatter_c(many, &result, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(result == 10 * (sum - size) + size * rank);
  MPI_Reduce_scatter_block_c(many, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(result == 10 * (sum - size) + size * rank);
  result = rank == 0 ? 77 : -1;
  MPI_Bcast_c(&result, 1, MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT(result == 77);
  MPI_Allgather_c(&own, 1, MPI_INT, whole, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(whole[r] == r + 1);
  memset(whole, 0, sizeof whole);
  MPI_Gather_c(&own, 1, MPI_INT, whole, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(rank != 0 || whole[r] == r + 1);
  memset(whole, 0, sizeof whole);
  MPI_Gatherv_c(&own, 1, MPI_INT, whole, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(rank != 0 || whole[r] == r + 1);
  MPI_Scatter_c(many, 1, MPI_INT, &result, 1, MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT(result == rank);
  MPI_Scatterv_c(many, counts, places, MPI_INT, &result, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  EXPECT(result == 10 * (size - 1) + rank);
  MPI_Alltoall_c(many, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(more[r] == 10 * r + rank);
  memset(more, 0, sizeof more);
  MPI_Alltoallw_c(many, counts, bytes, types, more, counts, bytes, types, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(more[r] == 10 * r + rank);
}

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int form = 0; form < 3; ++form) far_apart(form);
  small();
  if (rank == 0) puts("fine");
  MPI_Finalize();
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
