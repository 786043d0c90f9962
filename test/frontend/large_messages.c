/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives of more than 2 GiB, by name: large_messages NAME. A rank needs twice that, and all
 * ranks compare each element. Prints "fine". */
#include <stdint.h>

#include "scenario.h"

static const size_t kInts = 560000000; /* 2.1 GiB */
enum { kMostRanks = 16 };

static int value(int from, size_t i) { return (int)(((uint32_t)i * 2654435761U) >> 7) + from * 17; }

static int* memory(void) {
  int* const made = malloc(kInts * sizeof(int));
  EXPECT(made != NULL);
  return made;
}

static void fill(int* ints, size_t count, int from) {
  for (size_t i = 0; i < count; ++i) ints[i] = value(from, i);
}

static void compare(const int* got, size_t count, int from) {
  for (size_t i = 0; i < count; ++i) {
    if (got[i] == value(from, i)) continue;
    fprintf(stderr, "int %zu is %d\n", i, got[i]);
    EXPECT(!"as sent");
  }
}

static void compare_with_sum(const int* got, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    unsigned sum = 0;
    for (int r = 0; r < size; ++r) sum += (unsigned)value(r, first + i);
    if ((unsigned)got[i] == sum) continue;
    fprintf(stderr, "int %zu is %d\n", i, got[i]);
    EXPECT(!"the sum");
  }
}

static void one_count(void) {
  int* const ints = memory();
  fill(ints, kInts, rank == 0 ? 0 : 5);
  MPI_Bcast(ints, (int)kInts, MPI_INT, 0, MPI_COMM_WORLD);
  compare(ints, kInts, 0);
  free(ints);
}

/* Two elements of a type that is packed in parts. */
static void long_types(void) {
  int* const ints = memory();
  MPI_Datatype half;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD); /* so that the drop-in does nonblocking calls */
  MPI_Type_contiguous((int)(kInts / 2), MPI_INT, &half);
  MPI_Type_commit(&half);
  fill(ints, kInts, rank);
  MPI_Ibcast(ints, 2, half, size - 1, MPI_COMM_WORLD, &request);
  MPI_Type_free(&half);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  compare(ints, kInts, size - 1);
  free(ints);
}

/* A single element at the root, ints at the others. An MPI without MPI_Pack_c cannot do that with
 * the drop-in. */
static void one_element(void) {
#if MPI_VERSION >= 4
  int* const ints = memory();
  MPI_Datatype whole;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_contiguous((int)kInts, MPI_INT, &whole);
  MPI_Type_commit(&whole);
  fill(ints, kInts, rank);
  for (int root = 0; root < 2; ++root) {
    const int is_root = rank == root;
    MPI_Ibcast(ints, is_root ? 1 : (int)kInts, is_root ? whole : MPI_INT, root, MPI_COMM_WORLD,
               &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    compare(ints, kInts, 0);
    fill(ints, kInts, rank == 1 ? 0 : 5);
  }
  MPI_Type_free(&whole);
  free(ints);
#endif
}

/* Rows of 1000 ints, each with one between it and the next that stays as it is. */
static void gaps(void) {
  int* const ints = memory();
  const int rows = (int)(kInts / 1001);
  MPI_Datatype row, apart;
  MPI_Type_contiguous(1000, MPI_INT, &row);
  MPI_Type_create_resized(row, 0, 1001 * (MPI_Aint)sizeof(int), &apart);
  MPI_Type_commit(&apart);
  for (size_t i = 0; i < kInts; ++i) ints[i] = rank == 0 ? value(0, i) : -1;
  MPI_Bcast(ints, rows, apart, 0, MPI_COMM_WORLD);
  for (size_t i = 0; i < (size_t)rows * 1001; ++i) {
    EXPECT(ints[i] == (rank == 0 || i % 1001 < 1000 ? value(0, i) : -1));
  }
  MPI_Type_free(&apart);
  MPI_Type_free(&row);
  free(ints);
}

static void sums(void) {
  int* const ints = memory();
  fill(ints, kInts, rank);
  MPI_Allreduce(MPI_IN_PLACE, ints, (int)kInts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  compare_with_sum(ints, 0, kInts);
  free(ints);
}

/* The first rank's block is short. */
static void scattered_sums(void) {
  int* const ints = memory();
  int counts[kMostRanks];
  size_t first = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r == 0 ? 1001 : (int)((kInts - 1001) / (size_t)(size - 1));
    if (r < rank) first += (size_t)counts[r];
  }
  fill(ints, kInts, rank);
  MPI_Reduce_scatter(MPI_IN_PLACE, ints, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  compare_with_sum(ints, first, (size_t)counts[rank]);
  free(ints);
}

static void blocks(void) {
  int* const ints = memory();
  int counts[kMostRanks], places[kMostRanks];
  size_t at = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = (int)(kInts / (size_t)size) - (r == 0 ? 5 : 0);
    places[r] = (int)at;
    at += (size_t)counts[r];
  }
  fill(ints + places[rank], (size_t)counts[rank], rank);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, ints, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) compare(ints + places[r], (size_t)counts[r], r);
  free(ints);
}

static void exchange(void) {
  int* const ints = memory();
  const size_t each = kInts / (size_t)size;
  for (int r = 0; r < size; ++r) fill(ints + (size_t)r * each, each, rank * size + r);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, ints, (int)each, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) compare(ints + (size_t)r * each, each, r * size + rank);
  free(ints);
}

/* More elements than an int counts. */
static void large_counts(void) {
#if MPI_VERSION >= 4
  int* const ints = memory();
  signed char* const bytes = (signed char*)ints;
  const MPI_Count count = (MPI_Count)(kInts * sizeof(int));
  fill(ints, kInts, rank);
  MPI_Bcast_c(bytes, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  compare(ints, kInts, 0);
  for (MPI_Count i = 0; i < count; ++i) bytes[i] = (signed char)((i * 7 + rank) % 100);
  MPI_Allreduce_c(MPI_IN_PLACE, bytes, count, MPI_SIGNED_CHAR, MPI_MIN, MPI_COMM_WORLD);
  for (MPI_Count i = 0; i < count; ++i) {
    int least = 100;
    for (int r = 0; r < size; ++r) {
      const int given = (int)((i * 7 + r) % 100);
      least = least < given ? least : given;
    }
    EXPECT(bytes[i] == least);
  }
  free(ints);
#endif
}

static const Scenario all[] = {{"one_count", one_count},
                               {"long_types", long_types},
                               {"one_element", one_element},
                               {"gaps", gaps},
                               {"sums", sums},
                               {"scattered_sums", scattered_sums},
                               {"blocks", blocks},
                               {"exchange", exchange},
                               {"large_counts", large_counts}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  EXPECT(argc > 1 && size > 1 && size <= kMostRanks);
  run_scenario(all, sizeof all / sizeof *all, argv[1]);
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}
