/* SPDX-License-Identifier: BSD-3-Clause
 *
 * More corners of the MPI standard, by name: more_cases NAME. */
#include <complex.h>
#include <dirent.h>
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

/* Each kind of communicator, made while a collective of its parent is open. */
static void made_meanwhile(void) {
  int sum = -1, members = 0, dims[2] = {0, 0}, periods[2] = {0, 1}, keep[2] = {0, 1};
  MPI_Comm made[7];
  MPI_Request request, duplicating;
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Comm_idup(MPI_COMM_WORLD, &made[0], &duplicating);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &made[1]);
  MPI_Cart_sub(made[1], keep, &made[2]);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[3]);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &made[4]);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made[5]);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, rank, &made[6]);
  MPI_Wait(&duplicating, MPI_STATUS_IGNORE);
  for (int i = 0; i < 7; ++i) {
    if (made[i] == MPI_COMM_NULL) continue;
    MPI_Comm_size(made[i], &members);
    EXPECT(sum_of_ranks(made[i]) == triangle(members));
  }
  int from_left = -1;
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, &from_left, 1, MPI_INT, made[3]);
  EXPECT(from_left == left);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(sum == triangle(size));
  for (int i = 6; i >= 0; --i) {
    if (made[i] == MPI_COMM_NULL) continue;
    if (i % 2 == 0) {
      MPI_Comm_disconnect(&made[i]);
    } else {
      MPI_Comm_free(&made[i]);
    }
    EXPECT(made[i] == MPI_COMM_NULL);
  }
}

/* Attribute functions of the program that do collectives themselves. */
static int copies, deletions;
static int copy_with_call(MPI_Comm from, int key, void* extra, void* value, void* copied,
                          int* flag) {
  (void)key, (void)extra;
  EXPECT(sum_of_ranks(from) == triangle(size));
  *(void**)copied = value;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}
static int delete_with_call(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)value, (void)extra;
  EXPECT(sum_of_ranks(comm) == triangle(size));
  ++deletions;
  return MPI_SUCCESS;
}
static void attributes_that_call(void) {
  int key, word = 5, flag = 0;
  int* found = NULL;
  MPI_Comm parent, child;
  MPI_Comm_create_keyval(copy_with_call, delete_with_call, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  MPI_Comm_set_attr(parent, key, &word);
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(parent, &child);
    MPI_Comm_get_attr(child, key, &found, &flag);
    EXPECT(flag && found == &word);
    if (i > 0) EXPECT(sum_of_ranks(child) == triangle(size));
    MPI_Comm_free(&child);
  }
  MPI_Comm_free(&parent);
  MPI_Comm_free_keyval(&key);
  EXPECT(copies == 3 && deletions == 4);
}

/* MPI_Request_get_status leaves the request; empty lists; a request is null after its end. */
static void asked_first(void) {
  int sum = -1, flag = 0, index = 0, cancelled = 1, count = 7;
  MPI_Status status;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 20; ++i) {
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    for (flag = 0; !flag;) MPI_Request_get_status(request, &flag, &status);
    EXPECT(sum == triangle(size) && request != MPI_REQUEST_NULL);
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT(!cancelled);
    MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    EXPECT(flag);
    MPI_Wait(&request, &status);
    EXPECT(request == MPI_REQUEST_NULL);
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT(count == 0);
    MPI_Request_get_status(request, &flag, &status);
    EXPECT(flag);
  }
  MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
  flag = 0;
  MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
  EXPECT(flag);
  MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE);
  EXPECT(index == MPI_UNDEFINED);
  /* The rank alone. */
  MPI_Ibarrier(MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Arguments that mean nothing at this rank have any value. */
static void insignificant(void) {
  void* const nowhere = (void*)8;
  int* const all = malloc((size_t)(2 * size) * sizeof(int));
  for (int root = 0; root < size; ++root) {
    const int is_root = rank == root;
    int own = rank, out = -1;
    for (int i = 0; i < 2 * size; ++i) all[i] = is_root ? 10 * i : -1;
    MPI_Reduce(&own, is_root ? (void*)&out : nowhere, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    EXPECT(!is_root || out == triangle(size));
    MPI_Scatter(is_root ? all : nowhere, is_root ? 2 : -3, is_root ? MPI_INT : MPI_DATATYPE_NULL,
                is_root ? MPI_IN_PLACE : all, is_root ? -5 : 2,
                is_root ? MPI_DATATYPE_NULL : MPI_INT, root, MPI_COMM_WORLD);
    EXPECT(is_root || (all[0] == 20 * rank && all[1] == 20 * rank + 10));
    MPI_Gather(is_root ? MPI_IN_PLACE : all, is_root ? -3 : 2,
               is_root ? MPI_DATATYPE_NULL : MPI_INT, is_root ? all : nowhere, is_root ? 2 : -1,
               is_root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    for (int i = 0; is_root && i < 2 * size; ++i) EXPECT(all[i] == 10 * i);
  }
  free(all);
}

/* v and w collectives in place, with gaps between the blocks, whose bytes stay. */
static void in_place_with_gaps(void) {
  int* const counts = malloc((size_t)size * sizeof(int));
  int* const places = malloc((size_t)size * sizeof(int));
  int* const bytes = malloc((size_t)size * sizeof(int));
  MPI_Datatype* const types = malloc((size_t)size * sizeof(MPI_Datatype));
  int* const all = malloc((size_t)(4 * size) * sizeof(int));
  MPI_Request request;
  for (int r = 0; r < size; ++r) {
    counts[r] = 1 + (r + rank) % 3, places[r] = 4 * r, bytes[r] = 16 * r, types[r] = MPI_INT;
  }
  for (int form = 0; form < 4; ++form) {
    for (int i = 0; i < 4 * size; ++i) {
      all[i] = i % 4 < counts[i / 4] ? 100 * rank + i / 4 : -7;
    }
    if (form == 0) {
      MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, counts, places, MPI_INT,
                    MPI_COMM_WORLD);
    } else if (form == 1) {
      MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, counts, bytes, types, MPI_COMM_WORLD);
    } else if (form == 2) {
      MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, counts, places, MPI_INT,
                     MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, counts, bytes, types, MPI_COMM_WORLD,
                     &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 4 * size; ++i) {
      EXPECT(all[i] == (i % 4 < counts[i / 4] ? 100 * (i / 4) + rank : -7));
    }
  }
  for (int r = 0; r < size; ++r) counts[r] = r % 4;
  for (int i = 0; i < 4 * size; ++i) all[i] = i / 4 == rank && i % 4 < counts[rank] ? rank : -7;
  MPI_Allgatherv(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < 4 * size; ++i) EXPECT(all[i] == (i % 4 < counts[i / 4] ? i / 4 : -7));
  free(counts);
  free(places);
  free(bytes);
  free(types);
  free(all);
}

/* Predefined types in C and of Fortran, in reductions that MPI defines for them. */
static void many_types(void) {
  const float complex z = rank + 1 + I;
  float complex z_sum = 0;
  MPI_Allreduce(&z, &z_sum, 1, MPI_C_FLOAT_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(crealf(z_sum) == triangle(size) + size && cimagf(z_sum) == size);
  const _Bool yes[2] = {1, rank != 0};
  _Bool both[2] = {0, 1};
  MPI_Allreduce(yes, both, 2, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
  EXPECT(both[0] && !both[1]);
  const MPI_Aint address = rank;
  MPI_Aint addresses = -1;
  MPI_Allreduce(&address, &addresses, 1, MPI_AINT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(addresses == triangle(size));
  const MPI_Offset offset = 1;
  MPI_Offset offsets = -1;
  MPI_Scan(&offset, &offsets, 1, MPI_OFFSET, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(offsets == rank + 1);
  const MPI_Count word = rank + 1;
  MPI_Count product = -1;
  MPI_Allreduce(&word, &product, 1, MPI_COUNT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT(product == size);
  const unsigned char bits = (unsigned char)(1 << rank % 8);
  unsigned char all_bits = 0;
  MPI_Allreduce(&bits, &all_bits, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  EXPECT(all_bits == (unsigned char)((1 << (size < 8 ? size : 8)) - 1));
  struct {
    short value;
    int place;
  } own = {(short)(7 - rank / 2), rank}, least = {0, 0};
  MPI_Allreduce(&own, &least, 1, MPI_SHORT_INT, MPI_MINLOC, MPI_COMM_WORLD);
  EXPECT(least.value == 7 - (size - 1) / 2 && least.place == (size - 1) / 2 * 2);
  const int pair[2] = {5, rank};
  int most[2] = {0, -1};
  MPI_Allreduce(pair, most, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT(most[0] == 5 && most[1] == 0);
  if (MPI_INTEGER != MPI_DATATYPE_NULL) {
    int sum = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == triangle(size));
    const double half = 0.5;
    double halves = 0;
    MPI_Reduce(&half, &halves, 1, MPI_DOUBLE_PRECISION, MPI_SUM, size - 1, MPI_COMM_WORLD);
    EXPECT(rank != size - 1 || halves == 0.5 * size);
    const int place[2] = {rank, rank};
    int last[2] = {-1, -1};
    MPI_Allreduce(place, last, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD);
    EXPECT(last[0] == size - 1 && last[1] == size - 1);
  }
}

/* Affine maps, of which the order counts. The function calls MPI itself. */
static void compose(void* in, void* into, int* count, MPI_Datatype* type) {
  const unsigned long long* const first = in;
  unsigned long long* const second = into;
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  EXPECT(bytes == 16);
  for (int i = 0; i < 2 * *count; i += 2) {
    second[i + 1] += first[i + 1] * second[i];
    second[i] *= first[i];
  }
}
static void in_order(void) {
  enum { kMost = 3000 };
  unsigned long long* const in = malloc((size_t)(2 * kMost * size) * sizeof *in);
  unsigned long long* const out = malloc((size_t)(2 * kMost * size) * sizeof *in);
  MPI_Datatype map;
  MPI_Op op;
  MPI_Type_contiguous(2, MPI_UNSIGNED_LONG_LONG, &map);
  MPI_Type_commit(&map);
  MPI_Op_create(compose, 0, &op);
  for (int count = 1; count <= kMost; count = count * 7 + 1) {
    unsigned long long a = 1, b = 0, before_a = 1, before_b = 0;
    for (int r = 0; r < size; ++r) {
      if (r == rank) before_a = a, before_b = b;
      b = (unsigned long long)r + 7 + b * (2ULL * (unsigned)r + 3);
      a *= 2ULL * (unsigned)r + 3;
    }
    for (int i = 0; i < 2 * count * size; i += 2) {
      in[i] = 2ULL * (unsigned)rank + 3, in[i + 1] = (unsigned long long)rank + 7;
    }
    MPI_Allreduce(in, out, count, map, op, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * count; i += 2) EXPECT(out[i] == a && out[i + 1] == b);
    MPI_Exscan(in, out, count, map, op, MPI_COMM_WORLD);
    for (int i = 0; rank > 0 && i < 2 * count; i += 2) {
      EXPECT(out[i] == before_a && out[i + 1] == before_b);
    }
    MPI_Reduce_scatter_block(in, out, count, map, op, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * count; i += 2) EXPECT(out[i] == a && out[i + 1] == b);
    MPI_Reduce(rank == size - 1 ? MPI_IN_PLACE : in, rank == size - 1 ? in : NULL, count, map, op,
               size - 1, MPI_COMM_WORLD);
    for (int i = 0; rank == size - 1 && i < 2 * count; i += 2) EXPECT(in[i] == a && in[i + 1] == b);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&map);
  free(in);
  free(out);
}

/* No elements, of a type at rank 0 that is longer than an int can say. */
static void huge_type(void) {
  int counts[16] = {0}, places[16] = {0}, own = rank, out = -7;
  MPI_Datatype huge;
  EXPECT(size <= 16);
  MPI_Type_contiguous(1 << 30, MPI_DOUBLE, &huge);
  MPI_Type_commit(&huge);
  const MPI_Datatype type = rank == 0 ? huge : MPI_INT;
  MPI_Bcast(&own, 0, type, 0, MPI_COMM_WORLD);
  MPI_Allgatherv(&own, 0, type, &out, counts, places, MPI_INT, MPI_COMM_WORLD);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size) && out == -7);
  MPI_Type_free(&huge);
}

/* Elements without bytes, and blocks of no elements. */
static void nothing(void) {
  int* const counts = calloc((size_t)size, sizeof(int));
  int own = rank + 1, out = -7;
  int* const in = calloc((size_t)size, sizeof(int));
  MPI_Datatype empty;
  MPI_Request request;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  MPI_Bcast(&own, 3, empty, 0, MPI_COMM_WORLD);
  MPI_Allgather(&own, 5, empty, &out, 5, empty, MPI_COMM_WORLD);
  MPI_Ialltoall(&own, 5, empty, &out, 5, empty, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(own == rank + 1 && out == -7);
  counts[size - 1] = 1;
  in[0] = rank;
  MPI_Reduce_scatter(in, rank == size - 1 ? &out : NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(out == (rank == size - 1 ? triangle(size) : -7));
  counts[size - 1] = 0;
  MPI_Reduce_scatter(in, NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Alltoallv(in, counts, counts, MPI_INT, &out, counts, counts, MPI_INT, MPI_COMM_WORLD);
  MPI_Reduce(NULL, NULL, 0, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Scan(NULL, NULL, 0, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Type_free(&empty);
  free(counts);
  free(in);
}

/* Windows and their fences between collectives, on the same communicator. */
static void windows(void) {
  int memory = -1, sum = -1;
  MPI_Win window;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < 5; ++i) {
    MPI_Win_fence(0, window);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    const int word = rank + 100 * i;
    MPI_Put(&word, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    EXPECT(memory == (rank + size - 1) % size + 100 * i);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(sum == triangle(size));
    EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
  }
  MPI_Win_free(&window);
}

/* A handler that is set while the request is open, and freed at once. */
static int handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}
static void handlers(void) {
  int in[8] = {0}, out[8], code = MPI_SUCCESS;
  MPI_Comm comm;
  MPI_Errhandler mine, found;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
  const int started = MPI_Iallreduce(in, out, rank == 1 ? 8 : 4, MPI_INT, MPI_SUM, comm, &request);
  MPI_Comm_create_errhandler(handle, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  MPI_Errhandler_free(&mine);
  if (started == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(started != MPI_SUCCESS || (code != MPI_SUCCESS && handled == 1));
  MPI_Comm_get_errhandler(comm, &found);
  EXPECT(found != MPI_ERRORS_RETURN && found != MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&found);
  MPI_Comm_free(&comm);
  EXPECT(sum_of_ranks(MPI_COMM_WORLD) == triangle(size));
}

/* Calls between groups, of which the host's rules for roots hold. */
static void between_groups(void) {
  const int low = rank < size / 2, far = low ? size - size / 2 : size / 2;
  int word = rank, most[16];
  MPI_Comm half, inter, whole;
  MPI_Request request;
  MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 3, &inter);
  MPI_Allgather(&rank, 1, MPI_INT, most, 1, MPI_INT, inter);
  for (int i = 0; i < far; ++i) EXPECT(most[i] == (low ? size / 2 : 0) + i);
  MPI_Iallreduce(&rank, &word, 1, MPI_INT, MPI_MIN, inter, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(word == (low ? size / 2 : 0));
  word = -1;
  MPI_Reduce(&rank, &word, 1, MPI_INT, MPI_MAX, low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0,
             inter);
  EXPECT(word == (rank == 0 ? size - 1 : -1));
  MPI_Intercomm_merge(inter, !low, &whole);
  EXPECT(sum_of_ranks(whole) == triangle(size));
  MPI_Comm_free(&whole);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/* More communicators in turns than a thread keeps, and new ones with the handles of old ones. */
static void in_turns(void) {
  enum { AT_ONCE = 21, ROUNDS = 60 };
  MPI_Comm all[AT_ONCE];
  for (int i = 0; i < AT_ONCE; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? rank : -rank, &all[i]);
  }
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < AT_ONCE; ++i) {
      /* In every other one the ranks are the other way around. */
      int value = -1, expected = i % 2 == 0 ? 0 : size - 1;
      const int own = i % 2 == 0 ? rank : size - 1 - rank;
      if (own == 0) value = rank;
      MPI_Bcast(&value, 1, MPI_INT, 0, all[i]);
      EXPECT(value == expected);
    }
    const int replaced = round * 5 % AT_ONCE;
    MPI_Comm_free(&all[replaced]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, replaced % 2 == 0 ? rank : -rank, &all[replaced]);
  }
  for (int i = 0; i < AT_ONCE; ++i) MPI_Comm_free(&all[i]);
}

/* Calls that differ from the one before in one thing only. Block r of rank a's is 100 * a + r. */
static void lists(int turn, int root) {
  enum { MOST = 16, PLACES = 64 };
  int counts[MOST], places[MOST], in[PLACES], out[PLACES];
  const int apart = 2 + turn % 2;
  for (int r = 0; r < size; ++r) {
    counts[r] = r == turn % size ? turn % 3 : 2, places[r] = r * apart + turn % 4;
  }
  const int own = counts[rank];
  for (int i = 0; i < PLACES; ++i) in[i] = 100 * rank + i, out[i] = -1;
  MPI_Gatherv(in, own, MPI_INT, out, counts, places, MPI_INT, root, MPI_COMM_WORLD);
  for (int r = 0; rank == root && r < size; ++r) {
    for (int i = 0; i < counts[r]; ++i) EXPECT(out[places[r] + i] == 100 * r + i);
    if (counts[r] < apart) EXPECT(out[places[r] + counts[r]] == -1);
  }
  for (int i = 0; i < PLACES; ++i) out[i] = -1;
  const int stays = rank == root && turn % 5 == 4;
  MPI_Scatterv(in, counts, places, MPI_INT, stays ? MPI_IN_PLACE : (void*)out, own, MPI_INT, root,
               MPI_COMM_WORLD);
  for (int i = 0; i < own && !stays; ++i) EXPECT(out[i] == 100 * root + places[rank] + i);
  if (!stays) EXPECT(out[own] == -1);
}
static void one_difference(void) {
  enum { TURNS = 40, MOST = 16 };
  int in[2 * MOST], out[2 * MOST];
  EXPECT(size <= MOST);
  for (int turn = 0; turn < TURNS; ++turn) {
    lists(turn, 0);
    lists(turn, 0);
    lists(turn, turn % size);
    /* The same bytes of other types; another operator, count, root; in place; overlapping. */
    float number = rank == 0 ? 1.5F : 0;
    int word = rank == 0 ? turn : -1, sum = -1, most = -1;
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&number, 1, MPI_FLOAT, 0, MPI_COMM_WORLD);
    EXPECT(word == turn && number == 1.5F);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(sum == triangle(size) && most == size - 1);
    sum = rank;
    MPI_Allreduce(turn % 2 == 0 ? MPI_IN_PLACE : (void*)&rank, &sum, 1, MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    EXPECT(sum == triangle(size));
    for (int way = 0; way < 3; ++way) {
      const int root = (turn + way) % size, count = 1 + way % 2;
      for (int i = 0; i < 2 * MOST; ++i) in[i] = 100 * rank + i, out[i] = -1;
      void* from = in;
      if (way == 2 && rank == root) {
        from = MPI_IN_PLACE;
        out[rank] = in[0];
      }
      MPI_Gather(from, count, MPI_INT, out, count, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; rank == root && i < size * count; ++i) {
        EXPECT(out[i] == 100 * (i / count) + i % count);
      }
      /* The root's block lies among those that it gives. */
      MPI_Scatter(in, 1, MPI_INT, turn % 4 == 3 ? in + MOST : in + way, 1, MPI_INT, root,
                  MPI_COMM_WORLD);
      EXPECT(in[turn % 4 == 3 ? MOST : way] == 100 * root + rank);
    }
    /* A new type, perhaps with the handle of the last one. */
    MPI_Datatype type;
    MPI_Type_contiguous(1 + turn % 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 3; ++i) in[i] = rank == 0 ? turn + i : -1;
    MPI_Bcast(in, 1, type, 0, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    for (int i = 0; i < 3; ++i) EXPECT(in[i] == (rank == 0 || i <= turn % 3 ? turn + i : -1));
  }
}

static int open_descriptors(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}
/* Memory of this process that is in use, in KiB. */
static long used_memory(void) {
  long pages = -1, used = -1;
  FILE* const file = fopen("/proc/self/statm", "r");
  EXPECT(file != NULL && fscanf(file, "%ld %ld", &pages, &used) == 2);
  fclose(file);
  return used * (sysconf(_SC_PAGESIZE) / 1024);
}
/* 10,000 communicators that come and go leave no descriptor, and less than 400 bytes each. */
static void ten_thousand(void) {
  enum { kFirst = 1000, kAll = 10000, kMostKib = 4000 };
  int descriptors = 0;
  long memory = 0;
  for (int i = 0; i < kAll; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(sum_of_ranks(comm) == triangle(size));
    MPI_Comm_free(&comm);
    if (i == kFirst) descriptors = open_descriptors(), memory = used_memory();
  }
  EXPECT(open_descriptors() <= descriptors);
  EXPECT(memory > 0 && used_memory() <= memory + kMostKib);
}

/* Derived types without gaps, in the order of memory or not, of which a call needs a copy or not. A
 * handle may come again for another type. */
static void whole_types(void) {
  enum { kElements = 300 };
  int in[2 * kElements], *const all = malloc((size_t)(2 * kElements * size) * sizeof(int));
  const int lengths[] = {1, 1}, swapped[] = {1, 0};
  for (int turn = 0; turn < 12; ++turn) {
    const int half = 1 + turn % 3 * (kElements / 3), is_swapped = turn / 3 % 2;
    MPI_Datatype part, whole;
    MPI_Type_contiguous(half, MPI_INT, &part);
    if (is_swapped) {
      MPI_Type_indexed(2, lengths, swapped, part, &whole);
    } else {
      MPI_Type_contiguous(2, part, &whole);
    }
    MPI_Type_commit(&whole);
    for (int use = 0; use < 3; ++use) {
      for (int i = 0; i < 2 * half; ++i) in[i] = 10000 * rank + 1000 * use + i;
      MPI_Allgather(in, 1, whole, all, 2 * half, MPI_INT, MPI_COMM_WORLD);
      for (int i = 0; i < 2 * half * size; ++i) {
        const int at = i % (2 * half);
        EXPECT(all[i] == 10000 * (i / (2 * half)) + 1000 * use +
                             (is_swapped ? (at + half) % (2 * half) : at));
      }
      MPI_Allgather(in, 2 * half, MPI_INT, all, 1, whole, MPI_COMM_WORLD);
      EXPECT(all[is_swapped ? half : 0] == 1000 * use);
      EXPECT(all[is_swapped ? half - 1 : 2 * half - 1] == 1000 * use + 2 * half - 1);
    }
    MPI_Type_free(&part);
    MPI_Type_free(&whole);
  }
  free(all);
}

/* A collective cannot be cancelled: MPI says so, and it goes on. */
static void cancelled(void) {
  int sum = -1, is_cancelled = 1;
  MPI_Request request;
  MPI_Status status;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  EXPECT(MPI_Cancel(&request) != MPI_SUCCESS);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &is_cancelled);
  EXPECT(!is_cancelled && sum == triangle(size));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* MPI forbids to free the request of a nonblocking collective. It is an error, and the request and
 * the collective go on. */
static void freed_too_early(void) {
  int sum = -1, error_class = MPI_SUCCESS;
  MPI_Request request;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) { /* The others call it later, so it is not complete. */
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Error_class(MPI_Request_free(&request), &error_class);
    EXPECT(error_class == MPI_ERR_REQUEST && request != MPI_REQUEST_NULL);
    for (int r = 1; r < size; ++r) MPI_Send(&rank, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
  } else {
    int from = -1;
    MPI_Recv(&from, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  }
  EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(sum == triangle(size));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Rank 0 gets no result of exscan, and needs no place for it. Not every MPI alone allows that. */
static void no_place(void) {
  int sum = -1;
  MPI_Request request;
  MPI_Exscan(&rank, rank == 0 ? NULL : &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(rank == 0 || sum == triangle(rank));
  MPI_Iexscan(&rank, rank == 0 ? NULL : &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(rank == 0 || sum == rank - 1);
}

/* Its place there may even lead nowhere. */
static void bad_place(void) {
  struct {
    double value;
    int index;
  } mine = {rank, rank}, most;
  int sum = -1;
  char* const bad = (char*)0x1001;
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Exscan(&rank, rank == 0 ? bad : (void*)&sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(rank == 0 || sum == triangle(rank));
    MPI_Exscan(&mine, rank == 0 ? bad : (void*)&most, 1, MPI_DOUBLE_INT, MPI_MAXLOC,
               MPI_COMM_WORLD);
    EXPECT(rank == 0 || (most.value == rank - 1 && most.index == rank - 1));
  }
}

/* A sparse exchange that ends with a barrier: it looks for messages again and again. */
static void sparse(void) {
  MPI_Request requests[16], barrier;
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(size <= 16);
  for (int turn = 0; turn < 10; ++turn) {
    int sent = 0, is_sent = 0, is_in_barrier = 0, is_done = 0, found = 0, received = 0, word;
    for (int to = 0; to < size; ++to) {
      if ((rank + to + turn) % 3 == 0) continue;
      MPI_Issend(&rank, 1, MPI_INT, to, turn, MPI_COMM_WORLD, &requests[sent++]);
    }
    while (!is_done) {
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, turn, MPI_COMM_WORLD, &found, &status);
      if (found) {
        MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(word == status.MPI_SOURCE);
        ++received;
      }
      if (is_in_barrier) {
        MPI_Test(&barrier, &is_done, MPI_STATUS_IGNORE);
        continue;
      }
      MPI_Testall(sent, requests, &is_sent, MPI_STATUSES_IGNORE);
      if (is_sent) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
      is_in_barrier = is_sent;
    }
    EXPECT(received == sent); /* who sends to whom is symmetric */
  }
}

/* Long blocks of which each rank knows its own lengths, in one direction or both; blocking or not.
 * Rank a sends rank b kLong * ((a + b + turn) % 3) ints, and from turn 3 on nothing upwards. */
static int long_count(int from, int to, int turn) {
  enum { kLong = 30000 };
  return turn >= 3 && from < to ? 0 : kLong * ((from + to + turn) % 3);
}
static int long_word(int from, int to, int i) { return 1000003 * from + 1009 * to + i; }
static void long_blocks(void) {
  enum { kMost = 60100 };
  int* const in = malloc((size_t)(size * kMost) * sizeof(int));
  int* const out = malloc((size_t)(size * kMost) * sizeof(int));
  int counts[4][16], bytes[16];
  MPI_Datatype types[16];
  MPI_Request request;
  EXPECT(size <= 16);
  for (int r = 0; r < size; ++r) {
    counts[2][r] = r * kMost, bytes[r] = r * kMost * (int)sizeof(int), types[r] = MPI_INT;
    for (int i = 0; i < kMost; ++i) in[r * kMost + i] = long_word(rank, r, i);
  }
  for (int turn = 0; turn < 6; ++turn) {
    for (int r = 0; r < size; ++r) {
      counts[0][r] = long_count(rank, r, turn), counts[1][r] = long_count(r, rank, turn);
    }
    for (int way = 0; way < 3; ++way) {
      for (int i = 0; i < size * kMost; ++i) out[i] = -1;
      if (way == 0) {
        MPI_Alltoallv(in, counts[0], counts[2], MPI_INT, out, counts[1], counts[2], MPI_INT,
                      MPI_COMM_WORLD);
      } else if (way == 1) {
        MPI_Ialltoallv(in, counts[0], counts[2], MPI_INT, out, counts[1], counts[2], MPI_INT,
                       MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        MPI_Alltoallw(in, counts[0], bytes, types, out, counts[1], bytes, types, MPI_COMM_WORLD);
      }
      for (int i = 0; i < size * kMost; ++i) {
        const int from = i / kMost, at = i % kMost;
        EXPECT(out[i] == (at < counts[1][from] ? long_word(from, rank, at) : -1));
      }
    }
    const int root = turn % size, own = long_count(rank, root, turn);
    for (int r = 0; r < size; ++r) counts[3][r] = long_count(r, root, turn);
    for (int way = 0; way < 3; ++way) {
      const int is_in_place = way == 2 && rank == root;
      int* const block = in + root * kMost;
      for (int i = 0; i < size * kMost; ++i) out[i] = -1;
      if (is_in_place) memcpy(out + root * kMost, block, (size_t)own * sizeof(int));
      if (way == 1) {
        MPI_Igatherv(block, own, MPI_INT, out, counts[3], counts[2], MPI_INT, root, MPI_COMM_WORLD,
                     &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        MPI_Gatherv(is_in_place ? MPI_IN_PLACE : block, own, MPI_INT, out, counts[3], counts[2],
                    MPI_INT, root, MPI_COMM_WORLD);
      }
      for (int i = 0; rank == root && i < size * kMost; ++i) {
        const int from = i / kMost, at = i % kMost;
        EXPECT(out[i] == (at < counts[3][from] ? long_word(from, root, at) : -1));
      }
      /* And back, to where they came from. */
      memset(block, 0, (size_t)own * sizeof(int));
      if (way == 1) {
        MPI_Iscatterv(out, counts[3], counts[2], MPI_INT, block, own, MPI_INT, root, MPI_COMM_WORLD,
                      &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        MPI_Scatterv(out, counts[3], counts[2], MPI_INT, is_in_place ? MPI_IN_PLACE : block, own,
                     MPI_INT, root, MPI_COMM_WORLD);
      }
      if (is_in_place) memcpy(block, out + root * kMost, (size_t)own * sizeof(int));
      for (int i = 0; i < own; ++i) EXPECT(block[i] == long_word(rank, root, i));
    }
  }
  free(in);
  free(out);
}

static const Scenario all[] = {{"made_meanwhile", made_meanwhile},
                               {"attributes_that_call", attributes_that_call},
                               {"asked_first", asked_first},
                               {"insignificant", insignificant},
                               {"in_place_with_gaps", in_place_with_gaps},
                               {"many_types", many_types},
                               {"in_order", in_order},
                               {"nothing", nothing},
                               {"huge_type", huge_type},
                               {"windows", windows},
                               {"handlers", handlers},
                               {"whole_types", whole_types},
                               {"cancelled", cancelled},
                               {"freed_too_early", freed_too_early},
                               {"no_place", no_place},
                               {"bad_place", bad_place},
                               {"sparse", sparse},
                               {"long_blocks", long_blocks},
                               {"between_groups", between_groups},
                               {"in_turns", in_turns},
                               {"one_difference", one_difference},
                               {"ten_thousand", ten_thousand}};

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  if (argc > 1) run_scenario(all, sizeof all / sizeof all[0], argv[1]);
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}
