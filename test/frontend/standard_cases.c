/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the MPI standard promises about objects, types and requests, in programs of a few lines
 * each, by name: standard_cases NAME. Each holds on the bare MPI too. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "scenario.h"

static int sum_of_ranks(MPI_Comm comm) {
  int own, sum = -1;
  MPI_Comm_rank(comm, &own);
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}
static int triangle(int ranks) { return ranks * (ranks - 1) / 2; }

/* The standard's empty status. */
static void expect_empty(MPI_Status* told) {
  int count = -1, flag = -1;
  EXPECT(told->MPI_SOURCE == MPI_ANY_SOURCE && told->MPI_TAG == MPI_ANY_TAG);
  MPI_Get_count(told, MPI_INT, &count);
  MPI_Test_cancelled(told, &flag);
  EXPECT(count == 0 && flag == 0);
}

/* Null requests among collectives, and arrays that hold nothing else. */
static void empty_statuses(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status told[3];
  int index = -1, flag = 0, done = -1, indices[3], in = rank, out = -1;
  memset(told, 0x33, sizeof told);
  EXPECT(MPI_Wait(&requests[0], &told[0]) == MPI_SUCCESS);
  expect_empty(&told[0]);
  memset(told, 0x33, sizeof told);
  MPI_Test(&requests[0], &flag, &told[1]);
  EXPECT(flag);
  expect_empty(&told[1]);
  MPI_Waitany(3, requests, &index, &told[0]);
  EXPECT(index == MPI_UNDEFINED);
  expect_empty(&told[0]);
  MPI_Waitsome(3, requests, &done, indices, told);
  EXPECT(done == MPI_UNDEFINED);
  MPI_Testany(3, requests, &index, &flag, &told[0]);
  EXPECT(flag && index == MPI_UNDEFINED);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  memset(told, 0x33, sizeof told);
  EXPECT(MPI_Waitall(3, requests, told) == MPI_SUCCESS);
  expect_empty(&told[0]);
  expect_empty(&told[2]);
  EXPECT(out == triangle(size) && requests[1] == MPI_REQUEST_NULL);
}

/* A test that finds nothing complete changes no request and no status. */
static void untouched(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (size < 2) return;
  MPI_Request requests[2];
  MPI_Status told[2];
  int flag = -1, index = -7, word = -1, in = rank, out = -1;
  MPI_Irecv(&word, 1, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  memset(told, 0x44, sizeof told);
  const MPI_Request before[2] = {requests[0], requests[1]};
  for (int i = 0; i < 100; ++i) {
    MPI_Testall(2, requests, &flag, told);
    EXPECT(!flag && requests[0] == before[0] && requests[1] == before[1]);
  }
  MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  EXPECT(!flag);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD);
  while (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL) {
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    EXPECT(index == 0 || index == 1);
  }
  EXPECT(word == (rank + size - 1) % size && out == triangle(size));
}

/* Each way to make a communicator, and what it inherits. */
static void made_in_every_way(void) {
  MPI_Comm made[10];
  MPI_Group all, some;
  MPI_Info info;
  MPI_Request request;
  int count = 0, dims[2] = {0, 0}, periods[2] = {1, 0}, keep[2] = {1, 0}, same = -1;
  sum_of_ranks(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &made[count++]);
  MPI_Comm_idup(MPI_COMM_WORLD, &made[count], &request);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size)); /* while that one is on its way */
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ++count;
  MPI_Info_create(&info);
  MPI_Info_set(info, "unknown_key", "value");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made[count++]);
  MPI_Info_free(&info);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &made[count++]);
  for (int i = 0; i < count; ++i) {
    EXPECT(sum_of_ranks(made[i]) == triangle(size));
    MPI_Comm_compare(MPI_COMM_WORLD, made[i], &same);
    EXPECT(same == MPI_CONGRUENT || same == MPI_SIMILAR);
  }
  MPI_Cart_sub(made[3], keep, &made[count++]);
  EXPECT(sum_of_ranks(made[4]) == triangle(dims[0]));
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &made[count++]);
  EXPECT(sum_of_ranks(made[5]) == triangle(size));
  int of_host = -1;
  MPI_Comm_rank(made[5], &of_host);
  EXPECT(of_host == size - 1 - rank);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  int range[1][3] = {{size - 1, 0, -1}};
  MPI_Group_range_incl(all, 1, range, &some);
  MPI_Comm_create(MPI_COMM_WORLD, some, &made[count++]);
  MPI_Group_free(&some);
  EXPECT(sum_of_ranks(made[6]) == triangle(size));
  int first = rank;
  MPI_Bcast(&first, 1, MPI_INT, 0, made[6]);
  EXPECT(first == size - 1);
  int range_of_first[1][3] = {{0, (size - 1) / 2, 1}};
  MPI_Group_range_incl(all, 1, range_of_first, &some);
  if (rank <= (size - 1) / 2) { /* the others make no call at all */
    MPI_Comm group = MPI_COMM_NULL;
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, &group);
    EXPECT(sum_of_ranks(group) == triangle((size + 1) / 2));
    MPI_Comm_free(&group);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[count++]);
  EXPECT(sum_of_ranks(made[7]) == triangle(size));
  int got = -1;
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, made[7]);
  EXPECT(got == left);
  MPI_Comm none = MPI_COMM_SELF;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &none);
  EXPECT((none == MPI_COMM_NULL) == (rank == 0));
  if (none != MPI_COMM_NULL) {
    EXPECT(sum_of_ranks(none) == triangle(size - 1));
    MPI_Comm_free(&none);
  }
  while (count > 0) MPI_Comm_free(&made[--count]);
}

/* Between two groups, and merged again. */
static void groups_merged(void) {
  if (size < 2) return;
  MPI_Comm half, between, merged;
  const int side = rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 4, &between);
  int own, others = -1, word = -1;
  MPI_Comm_rank(half, &own);
  MPI_Barrier(between);
  MPI_Allreduce(&rank, &others, 1, MPI_INT, MPI_SUM, between);
  int expected = 0;
  for (int r = 1 - side; r < size; r += 2) expected += r;
  EXPECT(others == expected);
  if (side == 0) {
    word = 77;
    MPI_Bcast(&word, 1, MPI_INT, own == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
  } else {
    MPI_Bcast(&word, 1, MPI_INT, 0, between);
  }
  EXPECT(word == 77);
  MPI_Request request;
  MPI_Ibarrier(between, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Intercomm_merge(between, side, &merged);
  EXPECT(sum_of_ranks(merged) == triangle(size));
  int of_merged = -1;
  MPI_Comm_rank(merged, &of_merged);
  EXPECT((of_merged >= (size + 1) / 2) == (side == 1));
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

/* Copies of attributes, with the predefined functions and the program's; keys freed before. */
static int copied, deleted;
static int copy_and_count(MPI_Comm from, int key, void* extra, void* value, void* to, int* flag) {
  (void)from;
  (void)key;
  (void)extra;
  ++copied;
  *(void**)to = (char*)value + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete_and_count(MPI_Comm from, int key, void* value, void* extra) {
  (void)from;
  (void)key;
  (void)value;
  (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}
static void attributes_copied(void) {
  static char cells[8];
  int counted, plain, none, flag = 0;
  void* value = NULL;
  MPI_Comm first, second, third;
  MPI_Request request;
  copied = deleted = 0;
  MPI_Comm_create_keyval(copy_and_count, delete_and_count, &counted, NULL);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &none, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_set_attr(first, counted, &cells[0]);
  MPI_Comm_set_attr(first, plain, &cells[4]);
  MPI_Comm_set_attr(first, none, &cells[5]);
  EXPECT(sum_of_ranks(first) == triangle(size));
  MPI_Comm_dup(first, &second);
  EXPECT(sum_of_ranks(second) == triangle(size));
  MPI_Comm_idup(second, &third, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(sum_of_ranks(third) == triangle(size));
  EXPECT(copied == 2 && deleted == 0);
  MPI_Comm_get_attr(third, counted, &value, &flag);
  EXPECT(flag && value == &cells[2]);
  MPI_Comm_get_attr(third, plain, &value, &flag);
  EXPECT(flag && value == &cells[4]);
  MPI_Comm_get_attr(second, none, &value, &flag);
  EXPECT(!flag);
  MPI_Comm_get_attr(third, MPI_TAG_UB, &value, &flag);
  EXPECT(flag && *(int*)value >= 32767);
  MPI_Comm_delete_attr(second, counted);
  EXPECT(deleted == 1 && sum_of_ranks(second) == triangle(size));
  MPI_Comm_free_keyval(&counted);
  MPI_Comm_free_keyval(&plain);
  MPI_Comm_free_keyval(&none);
  MPI_Comm_free(&third);
  MPI_Comm_free(&first);
  EXPECT(deleted == 3 && sum_of_ranks(second) == triangle(size));
  MPI_Comm_free(&second);
}

/* Types that the standard makes of numbers of digits, and those that it finds by their size: they
 * take operators as predefined types do. */
static void made_types(void) {
  MPI_Datatype real, whole, found;
  double in[3] = {rank + 0.5, -rank, 1}, out[3];
  MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real);
  EXPECT(MPI_Allreduce(in, out, 3, real, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  EXPECT(out[0] == triangle(size) + 0.5 * size && out[1] == -triangle(size) && out[2] == size);
  MPI_Type_create_f90_integer(9, &whole);
  int number = rank, most = -1;
  EXPECT(MPI_Reduce(&number, &most, 1, whole, MPI_MAX, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  EXPECT(rank != 0 || most == size - 1);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 8, &found);
  int64_t wide = ((int64_t)1 << 40) + rank, sum = 0;
  EXPECT(MPI_Scan(&wide, &sum, 1, found, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  EXPECT(sum == ((int64_t)1 << 40) * (rank + 1) + triangle(rank + 1));
}

/* No size, no extent, or more size than extent. */
static void strange_extents(void) {
  MPI_Datatype nothing, again, back;
  int word = 5, all[64], got[4] = {-1, -1, -1, -1};
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  EXPECT(MPI_Bcast(&word, 7, nothing, 0, MPI_COMM_WORLD) == MPI_SUCCESS && word == 5);
  EXPECT(MPI_Allgather(&word, 3, nothing, all, 9, nothing, MPI_COMM_WORLD) == MPI_SUCCESS);
  MPI_Type_create_resized(MPI_INT, 0, 0, &again); /* the same int again and again */
  MPI_Type_commit(&again);
  word = 100 + rank;
  for (int root = 0; root < size; ++root) {
    if (rank == root) {
      MPI_Bcast(&word, 4, again, root, MPI_COMM_WORLD);
    } else {
      MPI_Bcast(got, 4, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; i < 4; ++i) EXPECT(got[i] == 100 + root);
    }
  }
  MPI_Allgather(&word, 4, again, all, 4, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < 4 * size; ++i) EXPECT(all[i] == 100 + i / 4);
  MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &back); /* each before the last */
  MPI_Type_commit(&back);
  for (int i = 0; i < 4; ++i) got[i] = 10 * rank + i;
  MPI_Allgather(&got[3], 4, back, all, 4, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < 4 * size; ++i) EXPECT(all[i] == 10 * (i / 4) + 3 - i % 4);
  for (int i = 0; i < 64; ++i) all[i] = -1;
  MPI_Gather(got, 4, MPI_INT, &all[4 * size - 1], 4, back, size - 1, MPI_COMM_WORLD);
  for (int i = 0; rank == size - 1 && i < 4 * size; ++i) {
    EXPECT(all[4 * size - 1 - i] == 10 * (i / 4) + i % 4);
  }
  MPI_Type_free(&back);
  MPI_Type_free(&again);
  MPI_Type_free(&nothing);
}

/* In place where blocks differ, some are empty, and gaps lie between them. */
static void places_with_gaps(void) {
  int* const counts = calloc((size_t)size, sizeof(int));
  int* const places = calloc((size_t)size, sizeof(int));
  int total = 0;
  for (int r = 0; r < size; ++r) counts[r] = (r + 1) % 3, places[r] = total, total += counts[r] + 2;
  int* const all = malloc((size_t)(total + 1) * sizeof(int));
  for (int i = 0; i < total; ++i) all[i] = -9;
  for (int i = 0; i < counts[rank]; ++i) all[places[rank] + i] = 10 * rank + i;
  MPI_Allgatherv(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < counts[r] + 2; ++i) {
      EXPECT(all[places[r] + i] == (i < counts[r] ? 10 * r + i : -9));
    }
  }
  /* Rank r gets counts[r] sums; the vector has no gaps. */
  int elements = 0, before = 0;
  for (int r = 0; r < size; ++r) before += r < rank ? counts[r] : 0, elements += counts[r];
  for (int i = 0; i < elements; ++i) all[i] = rank + i;
  MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < counts[rank]; ++i) EXPECT(all[i] == triangle(size) + size * (before + i));
  /* Pairs of ranks exchange as many elements each way. */
  for (int r = 0; r < size; ++r) counts[r] = (rank + r) % 3, places[r] = 3 * r;
  int* const pairs = malloc((size_t)(3 * size) * sizeof(int));
  for (int i = 0; i < 3 * size; ++i) pairs[i] = 100 * rank + i;
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, pairs, counts, places, MPI_INT,
                MPI_COMM_WORLD);
  for (int i = 0; i < 3 * size; ++i) {
    const int from = i / 3;
    EXPECT(pairs[i] == (i % 3 < counts[from] ? 100 * from + 3 * rank + i % 3 : 100 * rank + i));
  }
  int word = rank + 1;
  MPI_Exscan(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(rank == 0 || word == triangle(rank + 1));
  word = rank + 1;
  MPI_Scan(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_PROD, MPI_COMM_WORLD);
  int product = 1;
  for (int r = 0; r <= rank; ++r) product *= r + 1;
  EXPECT(word == product);
  free(pairs);
  free(all);
  free(counts);
  free(places);
}

/* Operators and types of the program that end while a collective with them goes on. */
static void add_pairs(void* in, void* into, int* count, MPI_Datatype* type) {
  int size_of_type = 0;
  MPI_Type_size(*type, &size_of_type);
  EXPECT(size_of_type == 2 * (int)sizeof(int));
  for (int i = 0; i < 2 * *count; ++i) ((int*)into)[i] += ((const int*)in)[i];
}
static void ended_early(void) {
  for (int round = 0; round < 10; ++round) {
    MPI_Comm comm;
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Request requests[2];
    int in[4] = {rank, round, 1, -rank}, sum[4], scan[4];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(add_pairs, 1, &op);
    MPI_Allreduce(in, sum, 2, pair, op, comm);
    EXPECT(sum[0] == triangle(size) && sum[1] == round * size && sum[2] == size);
    MPI_Iallreduce(in, sum, 2, pair, op, comm, &requests[0]);
    MPI_Iscan(in, scan, 2, pair, op, comm, &requests[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(sum[0] == triangle(size) && sum[3] == -triangle(size));
    EXPECT(scan[0] == triangle(rank + 1) && scan[2] == rank + 1);
  }
}

/* MPI_Comm_disconnect waits for pending communication on the communicator. */
static void disconnected(void) {
  MPI_Comm comm;
  MPI_Request request;
  int in = rank, out = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&comm);
  EXPECT(out == triangle(size) && comm == MPI_COMM_NULL);
}

/* All operators on types that they are defined for, also rarely used ones. */
static void operators(void) {
  const MPI_Aint aint = rank + 1;
  MPI_Aint aint_sum = 0;
  MPI_Allreduce(&aint, &aint_sum, 1, MPI_AINT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(aint_sum == triangle(size + 1));
  const MPI_Offset offset = -rank;
  MPI_Offset least = 1;
  MPI_Allreduce(&offset, &least, 1, MPI_OFFSET, MPI_MIN, MPI_COMM_WORLD);
  EXPECT(least == 1 - size);
  const unsigned char byte = (unsigned char)(1 << (rank % 8));
  unsigned char bits = 0;
  MPI_Allreduce(&byte, &bits, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  EXPECT(bits == (size >= 8 ? 255 : (1 << size) - 1));
  const int truth = rank == 0 ? 4 : 0;
  int logical[3] = {-1, -1, -1};
  MPI_Allreduce(&truth, &logical[0], 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  MPI_Allreduce(&truth, &logical[1], 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  MPI_Allreduce(&truth, &logical[2], 1, MPI_INT, MPI_LXOR, MPI_COMM_WORLD);
  EXPECT(!logical[0] == (size > 1) && logical[1] == 1 && logical[2] == 1);
  struct {
    double value;
    int index;
  } pair = {rank / 2, 100 - rank}, found = {-1, -1};
  MPI_Allreduce(&pair, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  EXPECT(found.value == 0 && found.index == (size > 1 ? 99 : 100)); /* the least index of equals */
  struct {
    short value;
    int index;
  } tiny = {(short)(rank % 2), rank}, largest = {-1, -1};
  MPI_Allreduce(&tiny, &largest, 1, MPI_SHORT_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT(largest.value == (size > 1) && largest.index == (size > 1));
  const long double longer = 0.25L * rank;
  long double longest = -1;
  MPI_Allreduce(&longer, &longest, 1, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  EXPECT(longest == 0.25L * (size - 1));
  const double complex_in[2] = {0, 1};
  double complex_out[2] = {-1, -1};
  MPI_Allreduce(complex_in, complex_out, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD);
  static const double powers[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}}; /* of i */
  EXPECT(complex_out[0] == powers[size % 4][0] && complex_out[1] == powers[size % 4][1]);
  const int8_t small = 100;
  int8_t wrapped = 0;
  MPI_Allreduce(&small, &wrapped, 1, MPI_INT8_T, MPI_MAX, MPI_COMM_WORLD);
  EXPECT(wrapped == 100);
  char packed[16];
  int at = 0, unpacked = -1;
  if (rank == 0) MPI_Pack(&size, 1, MPI_INT, packed, sizeof packed, &at, MPI_COMM_WORLD);
  MPI_Bcast(&at, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(packed, at, MPI_PACKED, 0, MPI_COMM_WORLD);
  at = 0;
  MPI_Unpack(packed, sizeof packed, &at, &unpacked, 1, MPI_INT, MPI_COMM_WORLD);
  EXPECT(unpacked == size);
}

/* A communicator of one rank, and the two that MPI makes. */
static void one_rank(void) {
  MPI_Comm dup;
  int in[2] = {rank, 7}, out[2] = {-1, -1}, count = 2, place = 0;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Comm comms[2] = {MPI_COMM_SELF, dup};
  for (int i = 0; i < 2; ++i) {
    MPI_Barrier(comms[i]);
    MPI_Allreduce(MPI_IN_PLACE, in, 2, MPI_INT, MPI_SUM, comms[i]);
    MPI_Alltoallv(in, &count, &place, MPI_INT, out, &count, &place, MPI_INT, comms[i]);
    EXPECT(out[0] == rank && out[1] == 7);
    MPI_Exscan(in, out, 2, MPI_INT, MPI_SUM, comms[i]);
    MPI_Reduce_scatter(in, out, &count, MPI_INT, MPI_SUM, comms[i]);
    EXPECT(out[0] == rank && out[1] == 7);
  }
  MPI_Comm_free(&dup);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
}

/* Invalid arguments, the same at all ranks: the class is the standard's, the communicator's handler
 * is called once, and the communicator still works. */
static int handled;
static void count_errors(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}
static void invalid_everywhere(void) {
  MPI_Errhandler mine;
  MPI_Comm comm;
  int in = rank, out = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(count_errors, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  MPI_Errhandler_free(&mine);
  EXPECT(sum_of_ranks(comm) == triangle(size));
  handled = 0;
  int code = MPI_Bcast(&in, 1, MPI_INT, size, comm);
  EXPECT(class_of(code) == MPI_ERR_ROOT && handled == 1);
  code = MPI_Bcast(&in, -1, MPI_INT, 0, comm);
  EXPECT(class_of(code) == MPI_ERR_COUNT && handled == 2);
  code = MPI_Bcast(&in, 1, MPI_DATATYPE_NULL, 0, comm);
  EXPECT(class_of(code) == MPI_ERR_TYPE && handled == 3);
  code = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm);
  EXPECT(class_of(code) == MPI_ERR_OP && handled == 4);
  MPI_Request request = MPI_REQUEST_NULL;
  code = MPI_Ibcast(&in, 1, MPI_INT, -5, comm, &request);
  EXPECT(class_of(code) == MPI_ERR_ROOT && handled == 5);
  EXPECT(sum_of_ranks(comm) == triangle(size));
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_Barrier(MPI_COMM_NULL)) == MPI_ERR_COMM);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
}

/* A communicator that the program has freed, where the MPI tells: one error a call. */
static void freed_before(void) {
  MPI_Errhandler mine;
  MPI_Comm comm;
  MPI_Request request = MPI_REQUEST_NULL;
  int in = rank, out = -1;
  MPI_Comm_create_errhandler(count_errors, &mine);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, mine);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  EXPECT(sum_of_ranks(comm) == triangle(size));
  const MPI_Comm freed = comm;
  MPI_Comm_free(&comm);
  handled = 0;
  EXPECT(class_of(MPI_Barrier(freed)) == MPI_ERR_COMM && handled == 1);
  int code = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, freed);
  EXPECT(class_of(code) == MPI_ERR_COMM && handled == 2);
  EXPECT(class_of(MPI_Ibarrier(freed, &request)) == MPI_ERR_COMM && handled == 3);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&mine);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
}

/* Collective writes and reads of a file, whose MPI calls collectives itself. */
static void files(void) {
  char name[64] = "";
  if (rank == 0) snprintf(name, sizeof name, "/tmp/unisono_standard_cases_%d", (int)getpid());
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_File file;
  int words[4], read[4] = {-1, -1, -1, -1};
  for (int i = 0; i < 4; ++i) words[i] = 10 * rank + i;
  EXPECT(MPI_File_open(MPI_COMM_WORLD, name,
                       MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                       &file) == MPI_SUCCESS);
  MPI_File_write_at_all(file, (MPI_Offset)sizeof words * rank, words, 4, MPI_INT,
                        MPI_STATUS_IGNORE);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
  const int other = (rank + 1) % size;
  MPI_File_read_at_all(file, (MPI_Offset)sizeof words * other, read, 4, MPI_INT, MPI_STATUS_IGNORE);
  for (int i = 0; i < 4; ++i) EXPECT(read[i] == 10 * other + i);
  MPI_File_close(&file);
}

/* An attribute of MPI_COMM_SELF is deleted first in MPI_Finalize: its function may still call
 * collectives. */
static int sum_at_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  int ended = -1;
  MPI_Finalized(&ended);
  EXPECT(!ended && sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
  return MPI_SUCCESS;
}
static void collective_at_end(void) {
  int key;
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_at_end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

/* The same calls again and again, with other values each time. */
static void repeated(void) {
  enum { kCalls = 200, kMost = 64 };
  int in[kMost], out[kMost], counts[kMost], places[kMost];
  for (int r = 0; r < size; ++r) counts[r] = 1, places[r] = r;
  for (int turn = 0; turn < kCalls; ++turn) {
    const int root = turn % size;
    for (int r = 0; r < size; ++r) in[r] = 1000 * turn + 10 * rank + r;
    MPI_Barrier(MPI_COMM_WORLD);
    int word = rank == root ? turn : -1;
    MPI_Bcast(&word, 1, MPI_INT, root, MPI_COMM_WORLD);
    EXPECT(word == turn);
    MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    EXPECT(rank != root || out[0] == 1000 * turn * size + 10 * triangle(size));
    MPI_Allreduce(in, out, size, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) EXPECT(out[r] == 1000 * turn + 10 * (size - 1) + r);
    MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) EXPECT(out[r] == 1000 * turn + 10 * r);
    MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; rank == root && r < size; ++r) EXPECT(out[r] == 1000 * turn + 10 * r);
    MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, root, MPI_COMM_WORLD);
    EXPECT(out[0] == 1000 * turn + 10 * root + rank);
    MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) EXPECT(out[r] == 1000 * turn + 10 * r + rank);
    MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(out[0] == 1000 * turn * (rank + 1) + 10 * triangle(rank + 1));
  }
}

/* In a trial the last rank comes late to the calls that Unisono does. So the host MPI is faster,
 * whatever else the machine does. After 50 calls the two take turns by the Thue-Morse sequence:
 * Unisono, the MPI, the MPI, Unisono; then from its begin again. */
enum { kBefore = 50, kFirstTurns = 4, kTurns = 24 };
static int is_turn_of_unisono(int call) {
  const int turn = call - kBefore, in_round = turn < kFirstTurns ? turn : turn - kFirstTurns;
  return turn >= 0 && turn < kTurns && __builtin_popcount((unsigned)in_round) % 2 == 0;
}
static void gather_slowly(MPI_Comm comm) {
  enum { kCalls = 100, kLateUs = 100000 };
  int out[64];
  for (int call = 0; call < kCalls; ++call) {
    if (is_turn_of_unisono(call) && rank == size - 1) usleep(kLateUs);
    const int in = 100 * call + rank;
    MPI_Allgather(&in, 1, MPI_INT, out, 1, MPI_INT, comm);
    for (int r = 0; r < size; ++r) EXPECT(out[r] == 100 * call + r);
  }
}
static void slow_by_turns(void) { gather_slowly(MPI_COMM_WORLD); }

/* In a trial a call fails at rank 1 alone, in Unisono's first turn: a root of a broadcast waits for
 * no rank. Then no rank waits for ever, all get an error, and calls that the trial has left to the
 * MPI go on. */
static void fails_at_one(void) {
  MPI_Comm comm;
  int errors = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  gather_slowly(comm);
  for (int call = 0; call < 2 * kBefore; ++call) {
    int word = rank == 0 ? call : -1;
    const int root = call == kBefore && rank == 1 ? size : 0;
    const int code = MPI_Bcast(&word, 1, MPI_INT, root, comm);
    EXPECT(call >= kBefore || (code == MPI_SUCCESS && word == call));
    EXPECT(root == 0 || class_of(code) == MPI_ERR_ROOT);
    if (root == 0 && code != MPI_SUCCESS) ++errors;
  }
  EXPECT(errors > 0);
  for (int call = 0; call < 10; ++call) {
    const int in = 10 * call + rank;
    int out[64];
    EXPECT(MPI_Allgather(&in, 1, MPI_INT, out, 1, MPI_INT, comm) == MPI_SUCCESS);
    for (int r = 0; r < size; ++r) EXPECT(out[r] == 10 * call + r);
  }
  MPI_Comm_free(&comm);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
}

/* Communicators end before, in and after a trial. */
static void freed_in_trial(void) {
  static const int calls[] = {kBefore - 1,           kBefore,
                              kBefore + 1,           kBefore + 2,
                              kBefore + kFirstTurns, kBefore + kFirstTurns + 1,
                              kBefore + kTurns - 1,  kBefore + kTurns,
                              kBefore + kTurns + 1};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < calls[i]; ++call) EXPECT(sum_of_ranks(comm) == triangle(size));
    MPI_Comm_free(&comm);
  }
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
}

/* A nonblocking collective is pending in each call of a trial, on the same communicator. */
static void pending_in_trial(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  for (int call = 0; call < kBefore + kTurns + 10; ++call) {
    const int in = 100 * call + rank;
    int out[64], sum = -1;
    MPI_Request request;
    MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Allgather(&in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) EXPECT(out[r] == 100 * call + r);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(sum == 100 * call * size + triangle(size));
  }
}

/* Displacements may be negative, count from MPI_BOTTOM, and be anything for empty blocks. */
static void places_below(void) {
  int counts[64], places[64], from[64], bytes[64], values[64], sent[64];
  MPI_Datatype types[64];
  for (int r = 0; r < size; ++r) {
    counts[r] = r == size - 1 ? 0 : 1;
    places[r] = r == size - 1 ? -1000000 : -r;
    from[r] = r - (size - 1);
    bytes[r] = from[r] * (int)sizeof(int);
    types[r] = MPI_INT;
  }
  memset(values, 0x55, sizeof values);
  MPI_Allgatherv(&rank, counts[rank], MPI_INT, &values[size - 1], counts, places, MPI_INT,
                 MPI_COMM_WORLD);
  for (int r = 0; r < size - 1; ++r) EXPECT(values[size - 1 - r] == r);
  EXPECT(values[0] == 0x55555555);
  for (int r = 0; r < size; ++r) {
    sent[r] = 100 * rank + r;
    counts[r] = 1;
    places[r] = r;
  }
  memset(values, 0x55, sizeof values);
  MPI_Alltoallv(&sent[size - 1], counts, from, MPI_INT, values, counts, places, MPI_INT,
                MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(values[r] == 100 * r + rank);
  memset(values, 0x55, sizeof values);
  MPI_Alltoallw(&sent[size - 1], counts, bytes, types, &values[size - 1], counts, bytes, types,
                MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) EXPECT(values[r] == 100 * r + rank);
  int own = -1;
  MPI_Scatterv(&sent[size - 1], counts, from, MPI_INT, &own, 1, MPI_INT, 0, MPI_COMM_WORLD);
  EXPECT(own == rank);
  memset(values, 0x55, sizeof values);
  MPI_Request request;
  MPI_Igatherv(&own, 1, MPI_INT, &values[size - 1], counts, from, MPI_INT, size - 1, MPI_COMM_WORLD,
               &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int r = 0; r < size && rank == size - 1; ++r) EXPECT(values[r] == r);
}

/* In place, a root's send buffer is only read. */
static void read_only(void) {
  static const int table[64] = {7, 8, 9, 10, 11, 12, 13, 14};
  static const double reals[64] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5};
  int counts[64], places[64], one = -1;
  double real = -1;
  for (int r = 0; r < size; ++r) counts[r] = 1, places[r] = r;
  MPI_Scatter(table, 1, MPI_INT, rank == 0 ? MPI_IN_PLACE : (void*)&one, 1, MPI_INT, 0,
              MPI_COMM_WORLD);
  EXPECT(rank == 0 || one == 7 + rank);
  MPI_Scatterv(reals, counts, places, MPI_DOUBLE, rank == 0 ? MPI_IN_PLACE : (void*)&real, 1,
               MPI_DOUBLE, 0, MPI_COMM_WORLD);
  EXPECT(rank == 0 || real == 0.5 + rank);
}

/* Bytes between and behind the parts of a pair are no part of it. */
static void padding_kept(void) {
  struct {
    double value;
    int place, mine;
  } in = {1.0 + rank, rank, 5}, out = {0, 0, 77};
  MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT(out.value == size && out.place == size - 1 && out.mine == 77);
  MPI_Scan(&in, &out, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  EXPECT(out.value == 1.0 && out.place == 0 && out.mine == 77);
}

static int count_type_copy(MPI_Datatype type, int keyval, void* extra, void* value, void* copy,
                           int* flag) {
  (void)type, (void)keyval, (void)extra, (void)value, (void)copy;
  ++copied;
  *flag = 0;
  return MPI_SUCCESS;
}
static int count_type_delete(MPI_Datatype type, int keyval, void* value, void* extra) {
  (void)type, (void)keyval, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

/* A collective copies no type of the program: its functions for attributes are not called. */
static void types_left_alone(void) {
  static int cell;
  int keyval, in[4] = {rank, -1, 10 + rank, -1}, out[4 * 64];
  MPI_Datatype two, sparse;
  MPI_Request request;
  copied = deleted = 0;
  MPI_Type_vector(2, 1, 2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 4 * sizeof(int), &sparse);
  MPI_Type_free(&two);
  MPI_Type_commit(&sparse);
  MPI_Type_create_keyval(count_type_copy, count_type_delete, &keyval, NULL);
  MPI_Type_set_attr(sparse, keyval, &cell);
  memset(out, 0x55, sizeof out);
  MPI_Iallgather(in, 1, sparse, out, 1, sparse, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int r = 0; r < size; ++r) EXPECT(out[4 * r] == r && out[4 * r + 2] == 10 + r);
  EXPECT(copied == 0 && deleted == 0 && out[1] == 0x55555555);
  MPI_Type_free(&sparse);
  EXPECT(deleted == 1);
  MPI_Type_free_keyval(&keyval);
}

/* An operator of MPICH's own. Its result is one flag, whatever the type is. */
static void own_operator(void) {
#ifdef MPIX_EQUAL
  int same = 5, flag = -1;
  MPI_Allreduce(&same, &flag, 1, MPI_INT, MPIX_EQUAL, MPI_COMM_WORLD);
  EXPECT(flag == 1);
  MPI_Allreduce(&rank, &flag, 1, MPI_INT, MPIX_EQUAL, MPI_COMM_WORLD);
  EXPECT(flag == (size == 1));
#endif
}

static const Scenario all[] = {{"empty_statuses", empty_statuses},
                               {"untouched", untouched},
                               {"made_in_every_way", made_in_every_way},
                               {"groups_merged", groups_merged},
                               {"attributes_copied", attributes_copied},
                               {"made_types", made_types},
                               {"strange_extents", strange_extents},
                               {"places_with_gaps", places_with_gaps},
                               {"places_below", places_below},
                               {"read_only", read_only},
                               {"padding_kept", padding_kept},
                               {"own_operator", own_operator},
                               {"types_left_alone", types_left_alone},
                               {"ended_early", ended_early},
                               {"disconnected", disconnected},
                               {"operators", operators},
                               {"one_rank", one_rank},
                               {"invalid_everywhere", invalid_everywhere},
                               {"freed_before", freed_before},
                               {"files", files},
                               {"repeated", repeated},
                               {"slow_by_turns", slow_by_turns},
                               {"fails_at_one", fails_at_one},
                               {"freed_in_trial", freed_in_trial},
                               {"pending_in_trial", pending_in_trial},
                               {"collective_at_end", collective_at_end}};

/* Before and after MPI these are allowed; a collective there is an error, which ends the rank. */
static void expect_state(int initialized, int finalized) {
  int flag = -1, version = 0, subversion = -1;
  MPI_Initialized(&flag);
  EXPECT(!flag == !initialized);
  MPI_Finalized(&flag);
  EXPECT(!flag == !finalized);
  MPI_Get_version(&version, &subversion);
  EXPECT(version >= 3);
}

int main(int argc, char** argv) {
  const char* const names = argc > 1 ? argv[1] : "";
  if (strcmp(names, "before_init") == 0) MPI_Barrier(MPI_COMM_WORLD);
  expect_state(0, 0);
  start_scenarios(&argc, &argv);
  expect_state(1, 0);
  run_scenario(all, sizeof all / sizeof all[0], names);
  MPI_Finalize();
  expect_state(1, 1);
  if (strcmp(names, "after_finalize") == 0) {
    int in = 1, out = 0;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) puts("fine");
  return 0;
}
