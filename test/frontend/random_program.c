/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random MPI programs, one after the other: random_program SEED STEPS PROGRAMS [plain], with the
 * seeds SEED, SEED + 1, ... All ranks draw the same collectives, types, communicators and roots
 * from the seed; each checks its results against what MPI defines. Rank 0 prints a hash of all that
 * the ranks received, so that runs with and without the drop-in can be compared. Collectives on
 * overlapping communicators, in place, with gaps, with zero counts, of some bytes and of megabytes,
 * between point-to-point messages that a rank waits for in a collective. Some of them are
 * nonblocking, beside others, or persistent. Now and then a rank comes late.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "persistent.h"
#include "random_hashes.h"

static unsigned long long seed;
static uint64_t state, hash;
static int world_rank;
static int is_plain;

static uint32_t draw(uint32_t below) { /* xorshift*; the same at all ranks */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * 2685821657736338717ULL) >> 33) % below;
}

static void note(const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ ((const unsigned char*)data)[i]) * 1099511628211ULL;
}

/* The element i that rank r gives in a step. Small, so that sums are exact in every type. */
static int value(int step, int r, int i) { return (step * 7 + r * 5 + i * 3) % 23 + 1; }

enum { kShort = 144000, kLong = 1 << 20 }; /* ints of a buffer that a step uses */
static int in[kLong], out[kLong], expected[kLong], more[kLong];
static int room; /* either */
static size_t room_bytes(void) { return (size_t)room * sizeof(int); }

static void clear(void) {
  for (int i = 0; i < room; ++i) in[i] = out[i] = expected[i] = -7;
}

typedef struct {
  MPI_Datatype type;
  int size;
} Kind;

static void put(MPI_Datatype type, void* buffer, int at, int v) {
  if (type == MPI_INT)
    ((int*)buffer)[at] = v;
  else if (type == MPI_DOUBLE)
    ((double*)buffer)[at] = v;
  else if (type == MPI_FLOAT)
    ((float*)buffer)[at] = (float)v;
  else if (type == MPI_UNSIGNED_SHORT)
    ((unsigned short*)buffer)[at] = (unsigned short)v;
  else if (type == MPI_UNSIGNED_CHAR)
    ((unsigned char*)buffer)[at] = (unsigned char)v;
  else
    ((int64_t*)buffer)[at] = v;
}

static int reduce_values(MPI_Op op, int a, int b) {
  if (op == MPI_SUM) return a + b;
  if (op == MPI_MAX) return a > b ? a : b;
  if (op == MPI_BXOR) return a ^ b;
  return a < b ? a : b;
}

static int over_ranks(MPI_Op op, int step, int first, int end, int i) {
  int result = value(step, first, i);
  for (int r = first + 1; r < end; ++r) result = reduce_values(op, result, value(step, r, i));
  return result;
}

static void check(const char* what, int step, const void* got, const void* want, size_t bytes) {
  if (memcmp(got, want, bytes) != 0) {
    size_t i = 0;
    while (((const char*)got)[i] == ((const char*)want)[i]) ++i;
    fprintf(stderr, "seed %llu: rank %d: step %d: %s is wrong from byte %zu of %zu on\n", seed,
            world_rank, step, what, i, bytes);
    MPI_Abort(MPI_COMM_WORLD, 3);
    _Exit(3); /* MPICH 5 comes back */
  }
  note(got, bytes);
}

static int counts[64], displacements[64], more_counts[64], more_displacements[64];

/* The counts of the ranks are together at most `total`. One is shorter or longer than the others,
 * or all are random. */
static void draw_long_counts(int size, int total) {
  const int way = (int)draw(5);
  const int other = (int)draw(2) == 0 ? 0 : (int)draw((uint32_t)size);
  const int longest = 1 + (int)draw((uint32_t)(total / size - 1));
  for (int r = 0; r < size; ++r) {
    const int is_other = r == other;
    if (way <= 1)
      counts[r] = is_other ? (int)draw((uint32_t)longest) >> draw(16) : longest;
    else if (way == 2)
      counts[r] = is_other ? longest : (int)draw(20);
    else if (way == 3)
      counts[r] = is_other ? longest * (size - 1) : 0;
    else
      counts[r] = (int)draw((uint32_t)longest);
  }
}

/* The communicator of the step, and this rank and the number of ranks there. */
static MPI_Comm comm_of_step;
static int rank_of_step, size_of_step;

/* Now and then one rank comes late, so that the others sleep in the call. */
static void delay(void) {
  const int is_long = room == kLong;
  if (draw(is_long ? 3 : 6) != 0) return;
  const int late = (int)draw((uint32_t)size_of_step);
  const struct timespec time = {0, 1000L * (long)draw(is_long || draw(4) == 0 ? 5000 : 300)};
  if (late == rank_of_step) nanosleep(&time, NULL);
}

/* Ends a nonblocking collective, in one of the ways that MPI has; each rank chooses its own. */
static void complete(MPI_Request* request, uint32_t way) {
  MPI_Request two[2] = {MPI_REQUEST_NULL, *request};
  int done = 0, index = 0;
  switch ((way + (uint32_t)world_rank) % 4) {
    case 0:
      MPI_Wait(request, MPI_STATUS_IGNORE);
      break;
    case 1:
      while (!done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
      break;
    case 2:
      MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
      break;
    default:
      MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE);
      break;
  }
}

static void complete_beside_others(MPI_Request* request, uint32_t way) {
  MPI_Request second;
  int one = 1, all = 0;
  MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm_of_step, &second);
  MPI_Barrier(comm_of_step);
  complete(&second, way + 1);
  check("number of ranks", -1, &all, &size_of_step, sizeof all);
  complete(request, way);
}

/* MPICH 4.0 alone fails in some calls in place, so it must not do them. They are reduce-scatters
 * with a short first block, and nonblocking alltoallw with gaps. */
#ifdef OPEN_MPI
enum { kFailsInPlace = 0 };
#else
enum { kFailsInPlace = 1 };
#endif
static int must_block; /* as the MPI does the step's call otherwise */

/* The collective, at random as a nonblocking or a persistent one. */
#define CALL(name, nonblocking, ...)                                  \
  do {                                                                \
    const uint32_t form = draw(6), way = draw(4);                     \
    MPI_Request request_of_call;                                      \
    delay();                                                          \
    if (form <= 1 && !must_block) {                                   \
      MPI_##nonblocking(__VA_ARGS__, &request_of_call);               \
      if (form == 0)                                                  \
        complete(&request_of_call, way);                              \
      else                                                            \
        complete_beside_others(&request_of_call, way);                \
    } else if (form == 2 && !must_block) {                            \
      PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, &request_of_call); \
      MPI_Start(&request_of_call);                                    \
      complete(&request_of_call, way);                                \
      MPI_Request_free(&request_of_call);                             \
    } else {                                                          \
      MPI_##name(__VA_ARGS__);                                        \
    }                                                                 \
  } while (0)

static void reduction(int step, MPI_Comm comm, int rank, int size) {
  const Kind kind = (Kind[]){{MPI_DOUBLE, sizeof(double)}, {MPI_FLOAT, sizeof(float)},
                             {MPI_INT, sizeof(int)},       {MPI_UNSIGNED_SHORT, sizeof(short)},
                             {MPI_UNSIGNED_CHAR, 1},       {MPI_INT64_T, sizeof(int64_t)}}[draw(6)];
  const uint32_t operators = kind.type == MPI_DOUBLE || kind.type == MPI_FLOAT ? 3 : 4;
  const MPI_Op op = (MPI_Op[]){MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR}[draw(operators)];
  const int is_long = room == kLong, most_long = kLong / 2; /* elements up to 8 bytes long */
  const int most = is_long ? most_long >> draw(6) : draw(4) == 0 ? 4500 : 40;
  const int count = (int)draw((uint32_t)most);
  const int is_drawn_in_place = (int)draw(2);
  const int root = (int)draw((uint32_t)size);
  const size_t bytes = (size_t)count * (size_t)kind.size;
  char* const send = (char*)in;
  char* const receive = (char*)out;
  const int drawn = (int)draw(is_long ? 10 : 6), which = drawn < 5 ? drawn : 5;
  const int in_place = is_drawn_in_place && !(kFailsInPlace && is_plain && which == 5);
  memset(out, 0x55, room_bytes());
  if (which <= 3) {
    for (int i = 0; i < count; ++i)
      put(kind.type, in_place ? receive : send, i, value(step, rank, i));
    const int begin = 0, end = which == 2 ? rank + 1 : which == 3 ? rank : size;
    for (int i = 0; i < count && end > 0; ++i) {
      put(kind.type, expected, i, over_ranks(op, step, begin, end, i));
    }
    void* const from = in_place ? MPI_IN_PLACE : send;
    if (which == 0) {
      CALL(Allreduce, Iallreduce, from, receive, count, kind.type, op, comm);
      check("allreduce", step, receive, expected, bytes);
    } else if (which == 1) {
      /* The input lies in the receive buffer if the call is in place. */
      const void* const own = in_place ? receive : send;
      void* const result = in_place && is_plain ? (void*)more : receive;
      const int at_root = in_place && !is_plain;
      CALL(Reduce, Ireduce, at_root && rank == root ? MPI_IN_PLACE : own,
           rank == root ? result : NULL, count, kind.type, op, root, comm);
      if (rank == root) check("reduce", step, result, expected, bytes);
    } else if (which == 2) {
      CALL(Scan, Iscan, from, receive, count, kind.type, op, comm);
      check("scan", step, receive, expected, bytes);
    } else {
      CALL(Exscan, Iexscan, from, receive, count, kind.type, op, comm);
      if (rank > 0) check("exscan", step, receive, expected, bytes);
    }
    return;
  }
  int before = 0, total = 0;
  const int each = is_long ? count / size : (int)draw(50);
  if (is_long) draw_long_counts(size, most_long);
  for (int r = 0; r < size; ++r) {
    if (which == 4)
      counts[r] = each;
    else if (!is_long)
      counts[r] = (int)draw(60) / (1 + (int)draw(3)) * (int)(draw(4) != 0);
    if (r < rank) before += counts[r];
    total += counts[r];
  }
  for (int i = 0; i < total; ++i)
    put(kind.type, in_place ? receive : send, i, value(step, rank, i));
  for (int i = 0; i < counts[rank]; ++i) {
    put(kind.type, expected, i, over_ranks(op, step, 0, size, before + i));
  }
  void* const from = in_place ? MPI_IN_PLACE : send;
  if (kFailsInPlace && in_place) MPI_Barrier(comm); /* then Unisono does nonblocking ones, too */
  if (which == 4) {
    CALL(Reduce_scatter_block, Ireduce_scatter_block, from, receive, each, kind.type, op, comm);
  } else {
    CALL(Reduce_scatter, Ireduce_scatter, from, receive, counts, kind.type, op, comm);
  }
  check("reduce_scatter", step, receive, expected, (size_t)counts[rank] * (size_t)kind.size);
}

/* Ints; `type` may have gaps: each element is followed by one int that must stay as it is. */
static void moves(int step, MPI_Comm comm, int rank, int size, MPI_Datatype gapped) {
  const int gaps_in = (int)draw(3) == 0, gaps_out = (int)draw(3) == 0;
  const int si = gaps_in ? 2 : 1, so = gaps_out ? 2 : 1;
  const MPI_Datatype ti = gaps_in ? gapped : MPI_INT, to = gaps_out ? gapped : MPI_INT;
  const int is_long = room == kLong, most_long = room / 2; /* as an element may have a gap */
  const int count = is_long        ? (int)draw((uint32_t)(most_long / size)) >> draw(4)
                    : draw(5) == 0 ? (int)draw(800)
                                   : (int)draw(12);
  /* With it go the blocks of alltoallv and alltoallw, which have up to 18 elements. */
  const int stretch = is_long ? 1 + (int)draw((uint32_t)(most_long / (64 * size))) : 1;
  const int root = (int)draw((uint32_t)size);
  const int in_place = (int)draw(3) == 0;
  const int which = (int)draw(10);
  if (kFailsInPlace && in_place && which >= 8) {
    must_block = is_plain;
    if (!is_plain) MPI_Barrier(comm); /* then Unisono does nonblocking ones, too */
  }
  clear();
  int total = 0, own_before = 0;
  if (is_long) draw_long_counts(size, most_long - 2 * size);
  for (int r = 0; r < size; ++r) {
    if (which < 5)
      counts[r] = count;
    else if (!is_long)
      counts[r] = (int)draw(20) * (int)(draw(4) != 0);
    total += (int)draw(3); /* a gap between blocks */
    displacements[r] = total;
    if (r == rank) own_before = total;
    total += counts[r];
  }
  switch (which) {
    case 0: { /* bcast: types may differ between ranks */
      const int mine = rank % 2 == 0 ? si : so;
      const MPI_Datatype type = rank % 2 == 0 ? ti : to;
      for (int i = 0; i < count; ++i) expected[i * mine] = value(step, root, i);
      if (rank == root) memcpy(out, expected, room_bytes());
      CALL(Bcast, Ibcast, out, count, type, root, comm);
      break;
    }
    case 1: /* allgather */
      for (int i = 0; i < count; ++i) {
        in[i * si] = value(step, rank, i);
        if (in_place) out[(rank * count + i) * so] = in[i * si];
      }
      for (int r = 0; r < size; ++r) {
        for (int i = 0; i < count; ++i) expected[(r * count + i) * so] = value(step, r, i);
      }
      CALL(Allgather, Iallgather, in_place ? MPI_IN_PLACE : in, count, ti, out, count, to, comm);
      break;
    case 2: /* gather */
      for (int i = 0; i < count; ++i) {
        in[i * si] = value(step, rank, i);
        if (in_place && rank == root) out[(rank * count + i) * so] = in[i * si];
      }
      for (int r = 0; r < size && rank == root; ++r) {
        for (int i = 0; i < count; ++i) expected[(r * count + i) * so] = value(step, r, i);
      }
      CALL(Gather, Igather, in_place && rank == root ? MPI_IN_PLACE : in, count, ti, out, count, to,
           root, comm);
      break;
    case 3: /* scatter */
      for (int i = 0; i < count * size && rank == root; ++i) in[i * si] = value(step, root, i);
      for (int i = 0; i < count; ++i) expected[i * so] = value(step, root, rank * count + i);
      if (in_place && rank == root) {
        CALL(Scatter, Iscatter, in, count, ti, MPI_IN_PLACE, count, to, root, comm);
        memcpy(expected, out, room_bytes());
      } else {
        CALL(Scatter, Iscatter, in, count, ti, out, count, to, root, comm);
      }
      break;
    case 4: /* alltoall */
      for (int i = 0; i < count * size; ++i) {
        in[i * si] = value(step, rank, i);
        if (in_place) out[i * so] = in[i * si];
      }
      for (int r = 0; r < size; ++r) {
        for (int i = 0; i < count; ++i)
          expected[(r * count + i) * so] = value(step, r, rank * count + i);
      }
      CALL(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : in, count, ti, out, count, to, comm);
      break;
    case 5: /* allgatherv */
      for (int i = 0; i < counts[rank]; ++i) {
        in[i * si] = value(step, rank, i);
        if (in_place) out[(own_before + i) * so] = in[i * si];
      }
      for (int r = 0; r < size; ++r) {
        for (int i = 0; i < counts[r]; ++i)
          expected[(displacements[r] + i) * so] = value(step, r, i);
      }
      CALL(Allgatherv, Iallgatherv, in_place ? MPI_IN_PLACE : in, counts[rank], ti, out, counts,
           displacements, to, comm);
      break;
    case 6: /* gatherv */
      for (int i = 0; i < counts[rank]; ++i) {
        in[i * si] = value(step, rank, i);
        if (in_place && rank == root) out[(own_before + i) * so] = in[i * si];
      }
      for (int r = 0; r < size && rank == root; ++r) {
        for (int i = 0; i < counts[r]; ++i)
          expected[(displacements[r] + i) * so] = value(step, r, i);
      }
      CALL(Gatherv, Igatherv, in_place && rank == root ? MPI_IN_PLACE : in, counts[rank], ti, out,
           counts, displacements, to, root, comm);
      break;
    case 7: /* scatterv */
      for (int r = 0; r < size && rank == root; ++r) {
        for (int i = 0; i < counts[r]; ++i) in[(displacements[r] + i) * si] = value(step, r, i);
      }
      for (int i = 0; i < counts[rank]; ++i) expected[i * so] = value(step, rank, i);
      if (in_place && rank == root) {
        CALL(Scatterv, Iscatterv, in, counts, displacements, ti, MPI_IN_PLACE, 0, to, root, comm);
        memcpy(expected, out, room_bytes());
      } else {
        CALL(Scatterv, Iscatterv, in, counts, displacements, ti, out, counts[rank], to, root, comm);
      }
      break;
    case 8: { /* alltoallv: rank a sends (a + b) % 7 or so times three elements to rank b */
      const int odd = (int)draw(7);
      int at_in = 0, at_out = 0;
      for (int r = 0; r < size; ++r) {
        counts[r] = more_counts[r] = (rank + r + odd) % 7 * 3 * stretch;
        displacements[r] = at_in += 2;
        more_displacements[r] = at_out += 1;
        at_in += counts[r];
        at_out += more_counts[r];
        for (int i = 0; i < counts[r]; ++i) {
          in[(displacements[r] + i) * si] = value(step, rank, r * 11 + i);
          if (in_place) out[(more_displacements[r] + i) * so] = value(step, rank, r * 11 + i);
        }
        for (int i = 0; i < more_counts[r]; ++i) {
          expected[(more_displacements[r] + i) * so] = value(step, r, rank * 11 + i);
        }
      }
      CALL(Alltoallv, Ialltoallv, in_place ? MPI_IN_PLACE : in, counts, displacements, ti, out,
           more_counts, more_displacements, to, comm);
      break;
    }
    default: { /* alltoallw: the same with types that differ by peer, and now and then none */
      const int block = 64 * stretch; /* ints of room */
      const int odd = (int)draw(7);
      MPI_Datatype types[64], more_types[64];
      for (int r = 0; r < size; ++r) {
        const int is_apart = (step + rank + r) % 2, is_more_apart = (step + 2 * rank + r) % 3 == 0;
        counts[r] = more_counts[r] = (rank + r + odd) % 7 * 3 * stretch;
        displacements[r] = more_displacements[r] = r * block * (int)sizeof(int);
        types[r] = counts[r] == 0 ? MPI_CHAR : is_apart ? gapped : MPI_INT;
        more_types[r] = more_counts[r] == 0 ? MPI_DOUBLE : is_more_apart ? gapped : MPI_INT;
        for (int i = 0; i < counts[r]; ++i) {
          const int at_out = r * block + i * (is_more_apart ? 2 : 1);
          in[r * block + i * (is_apart ? 2 : 1)] = value(step, rank, r * 11 + i);
          if (in_place) out[at_out] = value(step, rank, r * 11 + i);
          expected[at_out] = value(step, r, rank * 11 + i);
        }
      }
      CALL(Alltoallw, Ialltoallw, in_place ? MPI_IN_PLACE : in, counts, displacements, types, out,
           more_counts, more_displacements, more_types, comm);
    }
  }
  static const char* const names[] = {"bcast",     "allgather",  "gather",  "scatter",
                                      "alltoall",  "allgatherv", "gatherv", "scatterv",
                                      "alltoallv", "alltoallw"};
  check(names[which], step, out, expected, room_bytes());
}

/* Composes affine maps x -> p[0] x + p[s]: associative, and not commutative. The type may have
 * gaps, with which s is 2. */
static void compose(void* a, void* b, int* length, MPI_Datatype* type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  const int s = (int)(extent / (2 * (MPI_Aint)sizeof(unsigned)));
  for (int i = 0; i < *length; ++i) {
    const unsigned* const left = (unsigned*)a + 2 * s * i;
    unsigned* const right = (unsigned*)b + 2 * s * i;
    right[s] += left[s] * right[0];
    right[0] *= left[0];
  }
}

static void map_of(int step, int r, int i, unsigned* map) {
  map[0] = 3u + (unsigned)r;
  map[1] = (unsigned)value(step, r, i);
}

static void maps_over(int step, int first, int end, int i, unsigned* whole) {
  unsigned next[2];
  map_of(step, first, i, whole);
  for (int r = first + 1; r < end; ++r) {
    map_of(step, r, i, next);
    whole[1] = next[1] + whole[1] * next[0];
    whole[0] *= next[0];
  }
}

/* An operator of the program, on pairs with gaps or without. */
static void own_operator(int step, MPI_Comm comm, int rank, int size, MPI_Datatype types[2],
                         MPI_Op own) {
  const int which = (int)draw(6), has_blocks = which >= 4;
  /* MPICH 4.0 overruns its own buffers in a reduce-scatter of elements with gaps. */
  const int s = has_blocks ? 1 : 1 + (int)draw(2);
  const int is_long = room == kLong, most_long = room / 4;
  const int count = is_long        ? (int)draw((uint32_t)(most_long / size)) >> draw(4)
                    : draw(4) == 0 ? (int)draw(1125)
                                   : (int)draw(9);
  const int in_place = (int)draw(2);
  const int root = (int)draw((uint32_t)size);
  int all = 0, first = 0;
  if (is_long) draw_long_counts(size, most_long);
  for (int r = 0; r < size; ++r) {
    if (which != 5)
      counts[r] = count;
    else if (!is_long)
      counts[r] = (int)draw(60) * (int)(draw(4) != 0);
    if (r == rank) first = has_blocks ? all : 0;
    all += counts[r];
  }
  if (!has_blocks) all = count;
  unsigned* const send = (unsigned*)in;
  unsigned* const receive = (unsigned*)out;
  unsigned* const want = (unsigned*)expected;
  clear();
  /* The input lies in the receive buffer if the call is in place. */
  const int is_kept_out = is_plain && (which == 5 ? kFailsInPlace : which == 1);
  const int place = in_place && !is_kept_out && (which != 1 || rank == root);
  for (int i = 0; i < all; ++i) {
    unsigned map[2];
    map_of(step, rank, i, map);
    unsigned* const to = (place ? receive : send) + 2 * s * i;
    to[0] = map[0], to[s] = map[1];
    if (place) want[2 * s * i] = map[0], want[2 * s * i + s] = map[1];
  }
  const int end = which == 2 ? rank + 1 : which == 3 ? rank : size;
  for (int i = 0; i < counts[rank] && end > 0 && (which != 1 || rank == root); ++i) {
    unsigned whole[2];
    maps_over(step, 0, end, first + i, whole);
    want[2 * s * i] = whole[0], want[2 * s * i + s] = whole[1];
  }
  const void* const from = place ? MPI_IN_PLACE : send;
  const MPI_Datatype type = types[s - 1];
  must_block = kFailsInPlace && place && which == 5;
  switch (which) {
    case 0:
      CALL(Allreduce, Iallreduce, from, receive, count, type, own, comm);
      break;
    case 1:
      CALL(Reduce, Ireduce, from, receive, count, type, own, root, comm);
      break;
    case 2:
      CALL(Scan, Iscan, from, receive, count, type, own, comm);
      break;
    case 3:
      CALL(Exscan, Iexscan, from, receive, count, type, own, comm);
      break;
    case 4:
      CALL(Reduce_scatter_block, Ireduce_scatter_block, from, receive, count, type, own, comm);
      break;
    default:
      CALL(Reduce_scatter, Ireduce_scatter, from, receive, counts, type, own, comm);
  }
  if (which == 3 && rank == 0) return;
  /* Behind the result of a reduce-scatter in place, the rest is undefined. */
  const size_t of_result = (size_t)(2 * counts[rank]) * sizeof(int);
  check("own operator", step, out, expected, has_blocks && place ? of_result : room_bytes());
}

/* MPI's operators on pairs. */
static void locations(int step, MPI_Comm comm, int rank, int size) {
  struct {
    double value;
    int index;
  } mine = {value(step, rank, 0), rank}, result = {0, 0};
  int pair[2] = {value(step, rank, 1) / 8, rank}, least[2] = {0, 0};
  double most = value(step, 0, 0);
  int at[2] = {0, 0};
  for (int r = 1; r < size; ++r) {
    if (value(step, r, 0) > most) most = value(step, r, 0), at[0] = r;
    if (value(step, r, 1) / 8 < value(step, at[1], 1) / 8) at[1] = r;
  }
  CALL(Allreduce, Iallreduce, &mine, &result, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  check("maxloc", step, &result.index, &at[0], sizeof(int));
  check("maxloc's value", step, &result.value, &most, sizeof most);
  CALL(Allreduce, Iallreduce, pair, least, 1, MPI_2INT, MPI_MINLOC, comm);
  check("minloc", step, &least[1], &at[1], sizeof(int));
}

/* A rank sends a long message to the next, which receives it while it waits in a collective. The
 * sender reaches the collective only after its message has gone. */
static void message_during_a_barrier(int step, MPI_Comm comm, int rank, int size) {
  MPI_Request request;
  const int count = kShort;
  const int odd = (int)draw((uint32_t)size);
  if (rank == (odd + 1) % size) {
    MPI_Irecv(out, count, MPI_INT, odd, 5, comm, &request);
    MPI_Barrier(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) expected[i] = value(step, odd, i);
    check("message", step, out, expected, (size_t)count * sizeof(int));
  } else {
    if (rank == odd) {
      for (int i = 0; i < count; ++i) in[i] = value(step, odd, i);
      MPI_Ssend(in, count, MPI_INT, (odd + 1) % size, 5, comm);
    }
    MPI_Barrier(comm);
  }
}

enum { kComms = 5 };
static MPI_Comm comms[kComms];
static MPI_Datatype gapped, two, pair, apart, spread;
static MPI_Op own;

static void make_objects(void) {
  MPI_Type_vector(1, 1, 2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 2 * sizeof(int), &gapped);
  MPI_Type_commit(&gapped);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Type_vector(2, 1, 2, MPI_INT, &spread);
  MPI_Type_create_resized(spread, 0, 4 * sizeof(int), &apart);
  MPI_Type_commit(&apart);
  MPI_Op_create(compose, 0, &own);
  comms[0] = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comms[2]);
  MPI_Comm_split(comms[2], world_rank % 3 == 0, world_rank, &comms[3]);
  comms[4] = MPI_COMM_NULL;
}

static void free_objects(void) {
  for (int i = 1; i < kComms; ++i) {
    if (comms[i] != MPI_COMM_NULL) MPI_Comm_free(&comms[i]);
  }
  MPI_Op_free(&own);
  MPI_Type_free(&gapped);
  MPI_Type_free(&two);
  MPI_Type_free(&pair);
  MPI_Type_free(&apart);
  MPI_Type_free(&spread);
}

static void one_step(int step) {
  const int which = (int)draw(kComms);
  if (which == 4) { /* a communicator for one step */
    if (comms[4] != MPI_COMM_NULL) MPI_Comm_free(&comms[4]);
    MPI_Comm_dup(comms[draw(4)], &comms[4]);
  }
  const MPI_Comm comm = comm_of_step = comms[which];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  /* MPICH 4.0 has errors in reduce and allgatherv of one rank, which the drop-in leaves to it. */
  if (size == 1) return;
  rank_of_step = rank;
  size_of_step = size;
  room = draw(10) == 0 ? kLong : kShort;
  must_block = 0;
  switch (draw(9)) {
    case 0:
      CALL(Barrier, Ibarrier, comm);
      break;
    case 1:
      locations(step, comm, rank, size);
      break;
    case 3:
      own_operator(step, comm, rank, size, (MPI_Datatype[]){pair, apart}, own);
      break;
    case 2:
      message_during_a_barrier(step, comm, rank, size);
      break;
    case 4:
    case 5:
      reduction(step, comm, rank, size);
      break;
    default:
      moves(step, comm, rank, size, gapped);
  }
}

int main(int argc, char** argv) {
  const unsigned long long first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int steps = argc > 2 ? atoi(argv[2]) : 100;
  const unsigned long long programs = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  is_plain = argc > 4;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  for (seed = first; seed < first + programs; ++seed) {
    state = seed * 2654435761U + 88172645463325252ULL;
    hash = 1469598103934665603ULL;
    make_objects();
    for (int step = 0; step < steps; ++step) {
      /* Ranks of different communicators draw differently: so all begin a step alike. */
      const uint64_t whole = state;
      one_step(step);
      state = whole * 6364136223846793005ULL + 1442695040888963407ULL;
    }
    free_objects();
    print_hashes(seed, steps, hash);
  }
  MPI_Finalize();
  return 0;
}
