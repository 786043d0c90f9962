/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives with random derived types: random_types SEED STEPS PROGRAMS [late], with the seeds
 * SEED, SEED + 1, ... In a step all ranks move elements of the same signature, and each rank lays
 * them out in its own way: parts in any order, with gaps, before the buffer's address, with a lower
 * bound and an extent of its own, or from MPI_BOTTOM. Types are freed as early as MPI allows, which
 * some MPIs alone do not survive; or late. Each rank compares its whole memory with what MPI
 * defines, the gaps too. Prints "fine".
 */
#include <stdint.h>
#include <stdlib.h>

#include "persistent.h"
#include "scenario.h"

enum { kMostParts = 5, kMostRanks = 16, kRoom = 1 << 16, kMostCount = 4 };

static unsigned long long seed;
static uint64_t common, own; /* states: the same at all ranks, and this rank's */
static uint32_t draw(uint64_t* state, uint32_t below) { /* xorshift* */
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (uint32_t)((*state * 2685821657736338717ULL) >> 33) % below;
}

static int parts, basic[kMostParts]; /* the signature: indices of the lists below */
static const size_t lengths[] = {sizeof(int), sizeof(double), sizeof(char), sizeof(short)};
static MPI_Datatype basic_type(int i) {
  return (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT}[basic[i]];
}

/* A rank's layout of an element. */
typedef struct {
  MPI_Datatype type;
  MPI_Aint at[kMostParts];
  MPI_Aint extent;
} Layout;

static _Alignas(16) char memory[2][kRoom], expected[kRoom];

static Layout make_layout(void) {
  Layout made;
  MPI_Datatype types[kMostParts], raw;
  int order[kMostParts], ones[kMostParts];
  const int has_gaps = draw(&own, 4) != 0;
  MPI_Aint begin = has_gaps ? 8 * ((MPI_Aint)draw(&own, 11) - 5) : 0, end = begin;
  for (int i = 0; i < parts; ++i) order[i] = i, ones[i] = 1, types[i] = basic_type(i);
  for (int i = parts - 1; i > 0 && has_gaps; --i) {
    const int other = (int)draw(&own, (uint32_t)i + 1), kept = order[i];
    order[i] = order[other], order[other] = kept;
  }
  for (int i = 0; i < parts; ++i) { /* in this order in memory */
    const MPI_Aint length = (MPI_Aint)lengths[basic[order[i]]];
    end = (end + length - 1 + (MPI_Aint)64 * length) / length * length - (MPI_Aint)64 * length;
    if (has_gaps) end += length * (MPI_Aint)draw(&own, 3);
    made.at[order[i]] = end;
    end += length;
  }
  const MPI_Aint gap = has_gaps ? 8 * (MPI_Aint)draw(&own, 3) : 0;
  const MPI_Aint lower = has_gaps ? 8 * ((MPI_Aint)draw(&own, 7) - 3) : 0;
  made.extent = (end - begin + 7) / 8 * 8 + gap;
  if (has_gaps && draw(&own, 5) == 0) made.extent = -made.extent;
  MPI_Type_create_struct(parts, ones, made.at, types, &raw);
  MPI_Type_create_resized(raw, lower, made.extent, &made.type);
  MPI_Type_free(&raw);
  MPI_Type_commit(&made.type);
  return made;
}

/* Part `part` of the element `i` that rank `from` gives to rank `to`. */
static void put(char* place, int from, int to, int i, int part, int step) {
  const int value = (from * 37 + to * 11 + i * 5 + part * 3 + step) % 100 + 1;
  const double as_double = value;
  const short as_short = (short)value;
  const char as_char = (char)value;
  const void* const source[] = {&value, &as_double, &as_char, &as_short};
  memcpy(place, source[basic[part]], lengths[basic[part]]);
}

static void put_block(char* middle, const Layout* by, MPI_Aint first, int count, int from, int to,
                      int step) {
  for (int i = 0; i < count; ++i) {
    for (int part = 0; part < parts; ++part) {
      put(middle + (first + i) * by->extent + by->at[part], from, to, i, part, step);
    }
  }
}

static void finish(MPI_Request* request) {
  int done = 0;
  if (draw(&own, 2) == 0) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
  } else {
    while (!done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
  }
}

static int frees_early;
static Layout in, out;
static MPI_Datatype in_types[kMostRanks], out_types[kMostRanks];
static void free_types(void) {
  if (in.type == MPI_DATATYPE_NULL) return;
  MPI_Type_free(&in.type);
  MPI_Type_free(&out.type);
}

/* The collective in one of its forms, the same at all ranks. In nonblocking and persistent ones the
 * types are gone before it ends. */
#define CALL(name, nonblocking, ...)                          \
  do {                                                        \
    MPI_Request request = MPI_REQUEST_NULL;                   \
    if (form <= 1) {                                          \
      MPI_##name(__VA_ARGS__);                                \
    } else if (form == 2) {                                   \
      MPI_##nonblocking(__VA_ARGS__, &request);               \
      if (frees_early) free_types();                          \
      finish(&request);                                       \
    } else {                                                  \
      PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, &request); \
      if (frees_early) free_types();                          \
      for (int use = 0; use < 2; ++use) {                     \
        MPI_Start(&request);                                  \
        finish(&request);                                     \
      }                                                       \
      MPI_Request_free(&request);                             \
    }                                                         \
  } while (0)

static void step_with(MPI_Comm comm, int step) {
  int counts[2][kMostRanks], places[2][kMostRanks], bytes[2][kMostRanks];
  const int which = (int)draw(&common, 10), form = (int)draw(&common, 4);
  const int root = (int)draw(&common, (uint32_t)size), has_counts = which >= 5;
  const int count = (int)draw(&common, kMostCount + 1), odd = (int)draw(&common, 5);
  /* Persistent calls are started twice, and one in place would then begin with another input. */
  const int in_place = draw(&common, 3) == 0 && form != 3;
  parts = 1 + (int)draw(&common, kMostParts);
  for (int i = 0; i < parts; ++i) basic[i] = (int)draw(&common, 4);
  in = make_layout();
  out = make_layout();
  char* const from = memory[0] + kRoom / 2;
  char* const to = memory[1] + kRoom / 2;
  memset(memory, 0x6e, sizeof memory);
  memset(expected, 0x6e, sizeof expected);
  char* const want = expected + kRoom / 2;
  const int is_root = rank == root, is_exchange = which == 4 || which >= 8;
  const int turned[2] = {(int)draw(&own, (uint32_t)size), (int)draw(&own, (uint32_t)size)};
  const int is_rooted = which == 1 || which == 2 || which == 5 || which == 6;
  const int scatters = which == 2 || which == 6;
  for (int r = 0; r < size; ++r) {
    /* This rank gives r so many elements, and gets so many from it. */
    counts[0][r] = !has_counts ? count : is_exchange ? (rank + r + odd) % 4 : (r + odd) % 4;
    counts[1][r] = counts[0][r];
    for (int way = 0; way < 2; ++way) {
      places[way][r] = has_counts ? (r + turned[way]) % size * kMostCount : r * count;
    }
  }
  for (int r = 0; r < size; ++r) {
    bytes[0][r] = (int)(places[0][r] * in.extent), bytes[1][r] = (int)(places[1][r] * out.extent);
    in_types[r] = in.type, out_types[r] = out.type;
  }
  const int own_count = has_counts ? counts[0][rank] : count;
  /* Inputs. */
  if (which == 0) {
    if (is_root) put_block(from, &in, 0, count, root, 0, step);
  } else if (is_exchange || (scatters && is_root)) {
    for (int r = 0; r < size; ++r) {
      put_block(from, &in, places[0][r], counts[0][r], rank, r, step);
      if (is_exchange && in_place) {
        put_block(to, &out, places[1][r], counts[1][r], rank, r, step);
      }
    }
  } else if (!scatters) {
    put_block(from, &in, 0, own_count, rank, 0, step);
    if (in_place && (!is_rooted || is_root)) {
      put_block(to, &out, places[1][rank], own_count, rank, 0, step);
    }
  }
  memcpy(expected, memory[1], sizeof expected);
  /* Results. */
  if (which == 0) {
    if (!is_root) put_block(want, &out, 0, count, root, 0, step);
  } else if (scatters) {
    if (!(is_root && in_place)) put_block(want, &out, 0, own_count, root, rank, step);
  } else if (!is_rooted || is_root) {
    for (int r = 0; r < size; ++r) {
      put_block(want, &out, places[1][r], counts[1][r], r, is_exchange ? rank : 0, step);
    }
  }
  const void* const given = in_place && (!is_rooted || is_root) ? MPI_IN_PLACE : from;
  void* const got = in_place && is_root ? MPI_IN_PLACE : to;
  switch (which) {
    case 0:
      if (draw(&own, 3) == 0) { /* an absolute address */
        MPI_Aint address;
        Layout* const used = is_root ? &in : &out;
        MPI_Datatype whole;
        MPI_Get_address(is_root ? from : to, &address);
        MPI_Type_create_hindexed(1, &count, &address, used->type, &whole);
        MPI_Type_commit(&whole);
        MPI_Type_free(&used->type);
        used->type = whole;
        CALL(Bcast, Ibcast, MPI_BOTTOM, 1, used->type, root, comm);
      } else {
        CALL(Bcast, Ibcast, is_root ? from : to, count, is_root ? in.type : out.type, root, comm);
      }
      break;
    case 1:
      CALL(Gather, Igather, given, count, in.type, to, count, out.type, root, comm);
      break;
    case 2:
      CALL(Scatter, Iscatter, from, count, in.type, got, count, out.type, root, comm);
      break;
    case 3:
      CALL(Allgather, Iallgather, given, count, in.type, to, count, out.type, comm);
      break;
    case 4:
      CALL(Alltoall, Ialltoall, given, count, in.type, to, count, out.type, comm);
      break;
    case 5:
      CALL(Gatherv, Igatherv, given, own_count, in.type, to, counts[1], places[1], out.type, root,
           comm);
      break;
    case 6:
      CALL(Scatterv, Iscatterv, from, counts[0], places[0], in.type, got, own_count, out.type, root,
           comm);
      break;
    case 7:
      CALL(Allgatherv, Iallgatherv, given, own_count, in.type, to, counts[1], places[1], out.type,
           comm);
      break;
    case 8:
      CALL(Alltoallv, Ialltoallv, given, counts[0], places[0], in.type, to, counts[1], places[1],
           out.type, comm);
      break;
    default:
      CALL(Alltoallw, Ialltoallw, given, counts[0], bytes[0], in_types, to, counts[1], bytes[1],
           out_types, comm);
  }
  free_types();
  for (size_t i = 0; i < sizeof expected; ++i) {
    if (memory[1][i] == expected[i]) continue;
    fprintf(stderr,
            "seed %llu: rank %d: step %d: collective %d, form %d, in place %d: byte %zu is wrong\n",
            seed, rank, step, which, form, in_place, i - kRoom / 2);
    MPI_Abort(MPI_COMM_WORLD, 3);
    _Exit(3); /* MPICH 5 comes back */
  }
}

static void one_program(int steps) {
  MPI_Comm same;
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(same);
  for (int step = 0; step < steps; ++step) {
    common = (seed * 1000003 + (uint64_t)step) * 2654435761U + 88172645463325252ULL;
    own = common + 977 * (uint64_t)(rank + 1);
    step_with(draw(&common, 2) == 0 ? same : MPI_COMM_WORLD, step);
  }
  MPI_Comm_free(&same);
}

int main(int argc, char** argv) {
  start_scenarios(&argc, &argv);
  EXPECT(argc > 3 && size <= kMostRanks);
  const unsigned long long first = strtoull(argv[1], NULL, 10);
  const unsigned long long programs = strtoull(argv[3], NULL, 10);
  frees_early = argc == 4;
  for (seed = first; seed < first + programs; ++seed) one_program(atoi(argv[2]));
  if (rank == 0) puts("fine");
  MPI_Finalize();
  return 0;
}
