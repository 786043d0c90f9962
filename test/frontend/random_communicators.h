/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For random_requests.c: random numbers, and communicators that are made in each of MPI's ways. All
 * ranks draw the same ones. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "persistent.h"
#include "random_hashes.h"

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define HAS_SESSIONS 1
#else
#define HAS_SESSIONS 0
#endif
enum { kMostRanks = 16, kComms = 7 };

static uint64_t common, own; /* states: the same at all ranks, and this rank's */
static unsigned long long seed;
static int world_rank, step;

static uint32_t draw(uint64_t* state, uint32_t below) { /* xorshift* */
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (uint32_t)((*state * 2685821657736338717ULL) >> 33) % below;
}

static uint64_t state_of(uint64_t seed) {
  return seed * 2654435761U * 6364136223846793005ULL + 88172645463325252ULL;
}

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "seed %llu: rank %d: step %d: %s\n", seed, world_rank, step, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
  _Exit(3); /* MPICH 5 comes back */
}

typedef struct {
  MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
  int rank, size;
  int is_ring; /* each rank has its two neighbours */
  int is_of_session;
  int is_known; /* it has done a blocking collective, so the drop-in does its nonblocking ones */
} Member;
static Member members[kComms]; /* the first one is MPI_COMM_WORLD */

/* MPIs have errors in collectives of one rank, which the drop-in leaves to them. */
static int is_usable(const Member* in) { return in->comm != MPI_COMM_NULL && in->size > 1; }

static MPI_Comm make_of_group(const Member* from, uint32_t way) {
  MPI_Group all, some;
  MPI_Comm made = MPI_COMM_NULL;
  const int first = (int)draw(&common, 2);
  int range[1][3] = {{from->size - 1, first < from->size ? first : 0, -1}};
  const int is_in = from->rank >= range[0][1];
  MPI_Comm_group(from->comm, &all);
  MPI_Group_range_incl(all, 1, range, &some);
  if (way == 0)
    MPI_Comm_create(from->comm, some, &made);
  else if (is_in)
    MPI_Comm_create_group(from->comm, some, step, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

static MPI_Comm make_ring(const Member* from, uint32_t way) {
  MPI_Comm made;
  const int size = from->size, periodic = 1;
  const int neighbours[2] = {(from->rank + size - 1) % size, (from->rank + 1) % size};
  if (way == 0) {
    MPI_Cart_create(from->comm, 1, &size, &periodic, 0, &made);
  } else if (way == 1) {
    int ends[kMostRanks], edges[2 * kMostRanks];
    for (int r = 0; r < size; ++r) {
      ends[r] = 2 * (r + 1);
      edges[2 * r] = (r + size - 1) % size;
      edges[2 * r + 1] = (r + 1) % size;
    }
    MPI_Graph_create(from->comm, size, ends, edges, 0, &made);
  } else {
    MPI_Dist_graph_create_adjacent(from->comm, 2, neighbours, MPI_UNWEIGHTED, 2, neighbours,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  }
  return made;
}

/* The request of MPI_Comm_idup beside one of a barrier. */
static MPI_Comm make_meanwhile(const Member* from) {
  MPI_Comm made;
  MPI_Request requests[2];
  MPI_Comm_idup(from->comm, &made, &requests[0]);
  MPI_Ibarrier(from->comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return made;
}

static MPI_Comm make_half_of_grid(const Member* from) {
  MPI_Comm grid, made = MPI_COMM_NULL;
  const int sizes[2] = {from->size / 2, 2}, periodic[2] = {0, 1}, kept[2] = {1, 0};
  if (sizes[0] == 0) return MPI_COMM_NULL;
  MPI_Cart_create(from->comm, 2, sizes, periodic, 0, &grid); /* an odd last rank is not in it */
  if (grid == MPI_COMM_NULL) return MPI_COMM_NULL;
  MPI_Cart_sub(grid, kept, &made);
  MPI_Comm_free(&grid);
  return made;
}

#if HAS_SESSIONS
static MPI_Session session;
static void end_all_calls(void);
static MPI_Comm make_of_session(void) {
  MPI_Group all;
#ifdef OPEN_MPI
  /* A rank that waits in Open MPI's MPI_Comm_create_from_group does nothing for open calls. */
  end_all_calls();
  MPI_Barrier(MPI_COMM_WORLD);
#endif
  MPI_Comm made;
  char tag[64];
  snprintf(tag, sizeof tag, "%llu %d", seed, step);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Comm_create_from_group(all, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
  MPI_Group_free(&all);
  return made;
}
#endif

static void describe(Member* made, int is_ring, int is_of_session) {
  made->is_of_session = is_of_session;
  made->is_ring = is_ring && made->comm != MPI_COMM_NULL;
  made->is_known = 0;
  if (made->comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(made->comm, &made->rank);
  MPI_Comm_size(made->comm, &made->size);
}

static void make_communicator(Member* made, const Member* from) {
  const uint32_t way = draw(&common, 12), number = draw(&common, 5);
  made->comm = MPI_COMM_NULL;
#if HAS_SESSIONS
  if (way == 11) {
    made->comm = make_of_session();
    describe(made, 0, 1);
    return;
  }
#endif
  if (from->comm == MPI_COMM_NULL) return;
  int is_ring = 0;
  switch (way) {
    case 0:
    case 1:
      MPI_Comm_dup(from->comm, &made->comm);
      break;
    case 2: {
      const int colour = (from->rank + (int)number) % 3;
      MPI_Comm_split(from->comm, colour == 2 ? MPI_UNDEFINED : colour, -from->rank, &made->comm);
      break;
    }
    case 3:
      MPI_Comm_split(from->comm, from->rank % 2, (from->rank * 7 + (int)number) % 5, &made->comm);
      break;
    case 4:
      MPI_Comm_split_type(from->comm, MPI_COMM_TYPE_SHARED, -from->rank, MPI_INFO_NULL,
                          &made->comm);
      break;
    case 5:
    case 6:
      made->comm = make_of_group(from, way - 5);
      break;
    case 7:
      made->comm = make_meanwhile(from);
      break;
    case 8:
    case 9:
    case 10:
      is_ring = from->size >= 3;
      made->comm = is_ring ? make_ring(from, number % 3) : make_half_of_grid(from);
#ifdef OPEN_MPI /* 5.0 fails in collectives of neighbours of a graph */
      is_ring = is_ring && number % 3 == 0;
#endif
      break;
    default:
      made->comm = make_half_of_grid(from);
  }
  describe(made, is_ring, from->is_of_session);
}
