/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random MPI programs with many open calls: random_requests SEED STEPS PROGRAMS [plain], with the
 * seeds SEED, SEED + 1, ... Communicators come and go, made in each of MPI's ways. On them,
 * nonblocking and persistent collectives are open at once, beside messages and blocking
 * collectives. Each rank completes them in an order of its own and lays out its elements in its own
 * way: with gaps, backwards, or from MPI_BOTTOM. Types, operators and communicators are freed while
 * calls that use them are open; with "plain" they are not, and elements lie in order, as the MPIs
 * alone need it. All ranks draw the same calls from the seed. Each one compares its whole memory
 * with what MPI defines. Rank 0 prints a hash of it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "persistent.h"
#include "random_communicators.h"

#if MPI_VERSION >= 4
#define HAS_LARGE 1
#else
#define HAS_LARGE 0
#endif

enum { kSlots = 14, kUntouched = -7 };

static uint64_t hash;
static int is_plain;

/* ---- layouts --------------------------------------------------------------------------------- */

/* Where the elements of a buffer lie: blocks of ints. */
typedef enum { kElements, kBackwards, kAnywhere } Way;
typedef struct {
  Way way;
  int extent;          /* of an element; kElements */
  int length;          /* of a block; kBackwards and kAnywhere */
  const int* displace; /* of each block, in elements; null: one after the other */
  MPI_Datatype type;
  int is_derived;
} Layout;

/* The index in the memory of element i of the block. */
static int place(const Layout* by, int middle, int block, int i) {
  if (by->way == kBackwards) return middle + block * (2 * by->length - 1) - 2 * i;
  if (by->way == kAnywhere) return middle + 3 * (by->length - 1 - i) + i % 2;
  const int first = by->displace != NULL ? by->displace[block] : block * by->length;
  return middle + (first + i) * by->extent;
}

/* `memory`: of kAnywhere, whose type has addresses. */
static Layout make_layout(int length, int blocks, const int* displace, int is_own, int is_in_order,
                          int* memory, int middle) {
  Layout made = {kElements, 1, length, displace, MPI_INT, 0};
  const uint32_t way = draw(&own, 6);
  if (!is_own || way <= 1) return made;
  MPI_Datatype raw;
  made.is_derived = 1;
  if (!is_in_order && way == 4 && length > 0 && displace == NULL) {
    made.way = kBackwards;
    MPI_Type_vector(length, 1, -2, MPI_INT, &made.type);
  } else if (!is_in_order && way == 5 && length > 0 && length < 50 && blocks == 1 &&
             displace == NULL) {
    made.way = kAnywhere;
    MPI_Aint addresses[50];
    for (int i = 0; i < length; ++i) {
      MPI_Get_address(memory + place(&made, middle, 0, i), &addresses[i]);
    }
    MPI_Type_create_hindexed_block(length, 1, addresses, MPI_INT, &made.type);
  } else {
    made.extent = is_in_order || way == 2 ? 2 : -2;
    MPI_Type_create_resized(MPI_INT, 0, made.extent * (int)sizeof(int), &raw);
    MPI_Type_dup(raw, &made.type);
    MPI_Type_free(&raw);
  }
  MPI_Type_commit(&made.type);
  return made;
}

static void free_type(Layout* of) {
  if (of->is_derived) MPI_Type_free(&of->type);
  of->is_derived = 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef enum {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kScan,
  kExscan,
  kReduceScatterBlock,
  kReduceScatter,
  kAllgather,
  kGather,
  kScatter,
  kAlltoall,
  kAllgatherv,
  kGatherv,
  kScatterv,
  kAlltoallv,
  kAlltoallw,
  kNeighbours,
  kMessage, /* from the root to the next rank */
  kKinds
} Kind;
static const char* const names[kKinds] = {"barrier",
                                          "bcast",
                                          "reduce",
                                          "allreduce",
                                          "scan",
                                          "exscan",
                                          "reduce_scatter_block",
                                          "reduce_scatter",
                                          "allgather",
                                          "gather",
                                          "scatter",
                                          "alltoall",
                                          "allgatherv",
                                          "gatherv",
                                          "scatterv",
                                          "alltoallv",
                                          "alltoallw",
                                          "neighbor_allgather",
                                          "message"};

typedef enum { kBlocking, kNonblocking, kPersistent } Form;

typedef struct {
  int is_used;   /* by the program, whether this rank takes part or not */
  int is_in;     /* this rank has a request or had one */
  int is_active; /* and it is not complete */
  int may_start; /* a persistent one, whose communicator exists */
  int is_of_session;
  int is_plain; /* as the program's, or because the MPI does it */
  int comm;     /* index */
  Kind kind;
  Form form;
  int is_large, is_long, in_place, rank, size, root, length, salt;
  int counts[kMostRanks], places[kMostRanks], out_counts[kMostRanks], out_places[kMostRanks];
  int byte_places[kMostRanks], out_byte_places[kMostRanks]; /* of alltoallw */
  MPI_Datatype types[kMostRanks], out_types[kMostRanks];
#if HAS_LARGE
  MPI_Count large[kMostRanks], out_large[kMostRanks];
  MPI_Aint large_places[kMostRanks], out_large_places[kMostRanks];
#endif
  int room, middle; /* ints of a memory, and the buffer's place in it */
  int *in, *out, *want;
  Layout in_by, out_by;
  MPI_Op op;
  int is_own_op, keeps_first;
  MPI_Request request;
} Call;
static Call calls[kSlots];

static int value(const Call* of, int from, int to, int i) {
  return (of->salt * 31 + from * 7 + to * 13 + i * 3) % 101 + 1;
}

static int is_reduction(Kind kind) { return kind >= kReduce && kind <= kReduceScatter; }
static int has_lists(Kind kind) { return kind >= kAllgatherv && kind <= kAlltoallw; }
static int is_at_root(const Call* of) { return of->rank == of->root; }

/* Operators of the program: a sum, and the value of the first rank, which does not commute. */
static void add(void* in, void* target, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)target)[i] += ((int*)in)[i];
}
static void keep_first(void* in, void* target, int* count, MPI_Datatype* type) {
  (void)type;
  memcpy(target, in, (size_t)*count * sizeof(int));
}

static int reduced(const Call* of, int end, int to, int i) {
  int result = value(of, 0, to, i);
  for (int r = 1; r < end && !of->keeps_first; ++r) {
    const int next = value(of, r, to, i);
    if (of->op == MPI_MAX)
      result = result > next ? result : next;
    else
      result += next;
  }
  return result;
}

static int in_count(const Call* of, int block) {
  return of->kind == kReduceScatter || has_lists(of->kind) ? of->counts[block] : of->length;
}
static int out_count(const Call* of, int block) {
  return has_lists(of->kind) ? of->out_counts[block] : of->length;
}

static void put_in(Call* of, int to_out, int block, int i, int number) {
  if (to_out) {
    of->out[place(&of->out_by, of->middle, block, i)] = number;
    of->want[place(&of->out_by, of->middle, block, i)] = number;
  } else {
    of->in[place(&of->in_by, of->middle, block, i)] = number;
  }
}
static void want(Call* of, int block, int i, int number) {
  of->want[place(&of->out_by, of->middle, block, i)] = number;
}

static void fill_reduction(Call* of) {
  const int to_out = of->in_place && (of->kind != kReduce || is_at_root(of));
  const int has_blocks = of->kind == kReduceScatterBlock || of->kind == kReduceScatter;
  for (int block = 0, at = 0; block < (has_blocks ? of->size : 1); ++block) {
    for (int i = 0; i < in_count(of, block); ++i, ++at) {
      put_in(of, to_out, 0, at, value(of, of->rank, has_blocks ? block : 0, i));
    }
  }
  if (of->kind == kReduce && !is_at_root(of)) return;
  const int end = of->kind == kScan ? of->rank + 1 : of->kind == kExscan ? of->rank : of->size;
  for (int i = 0; i < in_count(of, has_blocks ? of->rank : 0) && end > 0; ++i) {
    want(of, 0, i, reduced(of, end, has_blocks ? of->rank : 0, i));
  }
}

static void fill_moves(Call* of) {
  const Kind kind = of->kind;
  const int to_all = kind == kAlltoall || kind == kAlltoallv || kind == kAlltoallw;
  if (kind == kBcast || kind == kMessage) {
    const int to = kind == kMessage && of->rank == (of->root + 1) % of->size;
    for (int i = 0; i < of->length; ++i) {
      if (is_at_root(of)) put_in(of, kind == kBcast, 0, i, value(of, of->root, 0, i));
      if (kind == kBcast || to) want(of, 0, i, value(of, of->root, 0, i));
    }
  } else if (to_all) {
    for (int r = 0; r < of->size; ++r) {
      for (int i = 0; i < in_count(of, r); ++i) {
        put_in(of, of->in_place, r, i, value(of, of->rank, r, i));
      }
    }
    for (int r = 0; r < of->size; ++r) {
      for (int i = 0; i < out_count(of, r); ++i) want(of, r, i, value(of, r, of->rank, i));
    }
  } else if (kind == kScatter || kind == kScatterv) {
    for (int r = 0; r < of->size && is_at_root(of); ++r) {
      for (int i = 0; i < in_count(of, r); ++i) put_in(of, 0, r, i, value(of, of->root, r, i));
    }
    if (of->in_place && is_at_root(of)) return;
    for (int i = 0; i < in_count(of, of->rank); ++i) {
      want(of, 0, i, value(of, of->root, of->rank, i));
    }
  } else if (kind == kNeighbours) {
    const int neighbours[2] = {(of->rank + of->size - 1) % of->size, (of->rank + 1) % of->size};
    for (int i = 0; i < of->length; ++i) {
      put_in(of, 0, 0, i, value(of, of->rank, 0, i));
      for (int k = 0; k < 2; ++k) want(of, k, i, value(of, neighbours[k], 0, i));
    }
  } else { /* gathers */
    const int has_root = kind == kGather || kind == kGatherv;
    const int to_out = of->in_place && (!has_root || is_at_root(of));
    for (int i = 0; i < out_count(of, of->rank); ++i) {
      put_in(of, to_out, to_out ? of->rank : 0, i, value(of, of->rank, 0, i));
    }
    if (has_root && !is_at_root(of)) return;
    for (int r = 0; r < of->size; ++r) {
      for (int i = 0; i < out_count(of, r); ++i) want(of, r, i, value(of, r, 0, i));
    }
  }
}

/* Inputs, and what the call shall leave. */
static void fill(Call* of) {
  for (int i = 0; i < of->room; ++i) of->in[i] = of->out[i] = of->want[i] = kUntouched;
  if (is_reduction(of->kind))
    fill_reduction(of);
  else if (of->kind != kBarrier)
    fill_moves(of);
}

static void verify(Call* of) {
  int first = 0, end = of->room;
  if (of->kind == kExscan && of->rank == 0) return;
  if (is_reduction(of->kind) && of->in_place && of->kind >= kReduceScatterBlock) {
    first = of->middle; /* the rest is undefined */
    end = of->middle + in_count(of, of->rank);
  }
  uint64_t found = 1469598103934665603ULL + (uint64_t)of->salt;
  for (int i = first; i < end; ++i) {
    if (of->out[i] != of->want[i]) {
      fprintf(stderr,
              "rank %d of %d: %s (form %d, large %d, in place %d, root %d, %d ints, layouts %d %d) "
              "of step %d: int %d is %d and not %d\n",
              of->rank, of->size, names[of->kind], of->form, of->is_large, of->in_place, of->root,
              of->length, of->in_by.way, of->out_by.way, of->salt, i - of->middle, of->out[i],
              of->want[i]);
      fail("a result is wrong");
    }
    found = (found ^ (uint64_t)(unsigned)of->out[i]) * 1099511628211ULL;
  }
  hash += found; /* in any order */
}

#if HAS_LARGE
#define MAKE_LARGE(name, nonblocking, ...)                                       \
  (of->form == kBlocking      ? MPI_##name##_c(__VA_ARGS__)                      \
   : of->form == kNonblocking ? MPI_##nonblocking##_c(__VA_ARGS__, &of->request) \
                              : MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &of->request))
#else
#define MAKE_LARGE(...) (fail("no large counts"), 0)
#endif
#define MAKE(name, nonblocking, ...)                                         \
  (of->form == kBlocking      ? MPI_##name(__VA_ARGS__)                      \
   : of->form == kNonblocking ? MPI_##nonblocking(__VA_ARGS__, &of->request) \
                              : PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, &of->request))
/* Without lists of counts. */
#define MAKE_EITHER(name, nonblocking, ...) \
  (of->is_large ? MAKE_LARGE(name, nonblocking, __VA_ARGS__) : MAKE(name, nonblocking, __VA_ARGS__))

static int make_reduction(Call* of, MPI_Comm comm) {
  const void* const from = of->in_place ? MPI_IN_PLACE : of->in + of->middle;
  void* const to = of->out + of->middle;
  switch (of->kind) {
    case kReduce: {
      const void* const own_input = is_at_root(of) ? from : of->in + of->middle;
      return MAKE_EITHER(Reduce, Ireduce, own_input, is_at_root(of) ? to : NULL, of->length,
                         MPI_INT, of->op, of->root, comm);
    }
    case kAllreduce:
      return MAKE_EITHER(Allreduce, Iallreduce, from, to, of->length, MPI_INT, of->op, comm);
    case kScan:
      return MAKE_EITHER(Scan, Iscan, from, to, of->length, MPI_INT, of->op, comm);
    case kExscan:
      return MAKE_EITHER(Exscan, Iexscan, from, to, of->length, MPI_INT, of->op, comm);
    case kReduceScatterBlock:
      return MAKE_EITHER(Reduce_scatter_block, Ireduce_scatter_block, from, to, of->length, MPI_INT,
                         of->op, comm);
    default:
#if HAS_LARGE
      if (of->is_large) {
        return MAKE_LARGE(Reduce_scatter, Ireduce_scatter, from, to, of->large, MPI_INT, of->op,
                          comm);
      }
#endif
      return MAKE(Reduce_scatter, Ireduce_scatter, from, to, of->counts, MPI_INT, of->op, comm);
  }
}

/* The buffer and the count of a layout's blocks for MPI. */
static void* buffer_of(const Layout* by, int* memory, int middle) {
  return by->way == kAnywhere ? MPI_BOTTOM : (void*)(memory + middle);
}
static int count_of(const Layout* by, int length) { return by->way == kElements ? length : 1; }

static int make_moves(Call* of, MPI_Comm comm) {
  const int at_root = is_at_root(of), root = of->root;
  void* const in = buffer_of(&of->in_by, of->in, of->middle);
  void* const to = buffer_of(&of->out_by, of->out, of->middle);
  const void* const from = of->in_place ? MPI_IN_PLACE : in;
  const MPI_Datatype ti = of->in_by.type, tu = of->out_by.type;
  const int ci = count_of(&of->in_by, of->length), cu = count_of(&of->out_by, of->length);
  switch (of->kind) {
    case kBcast:
      return MAKE_EITHER(Bcast, Ibcast, to, cu, tu, root, comm);
    case kAllgather:
      return MAKE_EITHER(Allgather, Iallgather, from, ci, ti, to, cu, tu, comm);
    case kGather:
      return MAKE_EITHER(Gather, Igather, at_root ? from : in, ci, ti, at_root ? to : NULL, cu, tu,
                         root, comm);
    case kScatter:
      return MAKE_EITHER(Scatter, Iscatter, at_root ? in : NULL, ci, ti,
                         at_root && of->in_place ? MPI_IN_PLACE : to, cu, tu, root, comm);
    case kAlltoall:
      return MAKE_EITHER(Alltoall, Ialltoall, from, ci, ti, to, cu, tu, comm);
    case kNeighbours:
      return MAKE(Neighbor_allgather, Ineighbor_allgather, in, ci, ti, to, cu, tu, comm);
    default:
      return MPI_ERR_OTHER;
  }
}

/* With lists of counts and displacements. */
static int make_listed(Call* of, MPI_Comm comm) {
  const int at_root = is_at_root(of), root = of->root, mine = of->out_counts[of->rank];
  const int scattered = of->counts[of->rank];
  void *const in = of->in + of->middle, *const to = of->out + of->middle;
  const void* const from = of->in_place ? MPI_IN_PLACE : in;
  void* const place_of_own = at_root && of->in_place ? MPI_IN_PLACE : to;
  const MPI_Datatype ti = of->in_by.type, tu = of->out_by.type;
#if HAS_LARGE
  if (of->is_large) {
    switch (of->kind) {
      case kAllgatherv:
        return MAKE_LARGE(Allgatherv, Iallgatherv, from, mine, ti, to, of->out_large,
                          of->out_large_places, tu, comm);
      case kGatherv:
        return MAKE_LARGE(Gatherv, Igatherv, at_root ? from : in, mine, ti, to, of->out_large,
                          of->out_large_places, tu, root, comm);
      case kScatterv:
        return MAKE_LARGE(Scatterv, Iscatterv, in, of->large, of->large_places, ti, place_of_own,
                          scattered, tu, root, comm);
      case kAlltoallv:
        return MAKE_LARGE(Alltoallv, Ialltoallv, from, of->large, of->large_places, ti, to,
                          of->out_large, of->out_large_places, tu, comm);
      default:
        return MAKE_LARGE(Alltoallw, Ialltoallw, from, of->large, of->large_places, of->types, to,
                          of->out_large, of->out_large_places, of->out_types, comm);
    }
  }
#endif
  switch (of->kind) {
    case kAllgatherv:
      return MAKE(Allgatherv, Iallgatherv, from, mine, ti, to, of->out_counts, of->out_places, tu,
                  comm);
    case kGatherv:
      return MAKE(Gatherv, Igatherv, at_root ? from : in, mine, ti, to, of->out_counts,
                  of->out_places, tu, root, comm);
    case kScatterv:
      return MAKE(Scatterv, Iscatterv, in, of->counts, of->places, ti, place_of_own, scattered, tu,
                  root, comm);
    case kAlltoallv:
      return MAKE(Alltoallv, Ialltoallv, from, of->counts, of->places, ti, to, of->out_counts,
                  of->out_places, tu, comm);
    default:
      return MAKE(Alltoallw, Ialltoallw, from, of->counts, of->byte_places, of->types, to,
                  of->out_counts, of->out_byte_places, of->out_types, comm);
  }
}

static int make_message(Call* of, MPI_Comm comm) {
  const int to = (of->root + 1) % of->size, tag = (int)(of - calls);
  void* const in = buffer_of(&of->in_by, of->in, of->middle);
  void* const out = buffer_of(&of->out_by, of->out, of->middle);
  const int ci = count_of(&of->in_by, of->length), cu = count_of(&of->out_by, of->length);
  if (is_at_root(of)) {
    return of->form == kPersistent
               ? MPI_Send_init(in, ci, of->in_by.type, to, tag, comm, &of->request)
               : MPI_Isend(in, ci, of->in_by.type, to, tag, comm, &of->request);
  }
  return of->form == kPersistent
             ? MPI_Recv_init(out, cu, of->out_by.type, of->root, tag, comm, &of->request)
             : MPI_Irecv(out, cu, of->out_by.type, of->root, tag, comm, &of->request);
}

static int make(Call* of, MPI_Comm comm) {
  if (of->kind == kBarrier) return MAKE(Barrier, Ibarrier, comm);
  if (is_reduction(of->kind)) return make_reduction(of, comm);
  if (of->kind == kMessage) return make_message(of, comm);
  if (has_lists(of->kind)) return make_listed(of, comm);
  return make_moves(of, comm);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void completed(Call* of) {
  of->is_active = 0;
  verify(of);
}

static void wait_for(Call* of) {
  int done = 0;
  const int waits =
      draw(&own, 2) == 0; /* drawn also if it is complete, which is a matter of time */
  if (!of->is_active) return;
  if (waits) {
    MPI_Wait(&of->request, MPI_STATUS_IGNORE);
  } else {
    while (!done) MPI_Test(&of->request, &done, MPI_STATUS_IGNORE);
  }
  completed(of);
}

static void free_objects(Call* of) {
  free_type(&of->in_by);
  free_type(&of->out_by);
  if (of->is_own_op) MPI_Op_free(&of->op);
  of->is_own_op = 0;
}

static void end_call(Call* of) {
  if (of->is_in) {
    wait_for(of);
    if (of->request != MPI_REQUEST_NULL) MPI_Request_free(&of->request);
    free_objects(of);
    free(of->in);
    free(of->out);
    free(of->want);
  }
  of->is_used = of->is_in = 0;
}

/* Some of the open calls, by one of MPI's functions. This rank alone decides. */
static void complete_some(void) {
  MPI_Request requests[kSlots];
  int chosen[kSlots], found[kSlots], count = 0, done = 0, index = 0, active = 0;
  /* One function takes no requests of two sessions. */
  const int is_of_session = HAS_SESSIONS && draw(&own, 4) == 0;
  for (int i = 0; i < kSlots; ++i) {
    if (!calls[i].is_in || draw(&own, 2) == 0) continue;
    if (calls[i].is_of_session != is_of_session) continue;
    active += calls[i].is_active;
    chosen[count] = i;
    requests[count++] = calls[i].request; /* inactive and null ones too */
  }
  uint32_t way = draw(&own, 6);
  int number = 0;
#ifndef OPEN_MPI /* MPICH's MPI_Testall alone fails with persistent collectives */
  if (is_plain && way == 1) way = 0;
#endif
  if (way == 0) {
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    number = count;
    for (int i = 0; i < count; ++i) found[i] = i;
  } else if (way == 1) {
    while (!done) MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    number = count;
    for (int i = 0; i < count; ++i) found[i] = i;
  } else if (way == 2) {
    MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    if (index != MPI_UNDEFINED) found[number++] = index;
    if ((index == MPI_UNDEFINED) != (active == 0)) fail("MPI_Waitany gave nothing");
  } else if (way == 3) {
    MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE);
    if (done && index != MPI_UNDEFINED) found[number++] = index;
  } else {
    if (way == 4)
      MPI_Waitsome(count, requests, &number, found, MPI_STATUSES_IGNORE);
    else
      MPI_Testsome(count, requests, &number, found, MPI_STATUSES_IGNORE);
    if ((number == MPI_UNDEFINED) != (active == 0)) fail("a function gave no requests");
    if (number == MPI_UNDEFINED) number = 0;
  }
  for (int i = 0; i < count; ++i) calls[chosen[i]].request = requests[i];
  for (int i = 0; i < number; ++i) {
    Call* const of = &calls[chosen[found[i]]];
    if (of->is_active)
      completed(of);
    else if (way > 1)
      fail("a request that is not active was given");
  }
}

static void draw_lists(Call* of) {
  const int turn = (int)draw(&common, 7), is_reversed = (int)draw(&common, 2);
  const int to_all = of->kind == kAlltoallv || of->kind == kAlltoallw;
  int at = 0, out_at = 0;
  const int stretch = of->is_long ? 1 + (int)draw(&common, 8000) : 1;
  for (int r = 0; r < of->size; ++r) {
    const int block = is_reversed ? of->size - 1 - r : r;
    /* Symmetric, so that the call may be in place. */
    of->counts[block] =
        (to_all ? (of->rank + block + turn) % 5 * 3 : (block * 5 + turn) % 7 * 2) * stretch;
    of->out_counts[block] = of->counts[block];
    of->places[block] = at += 1;
    of->out_places[block] = out_at += (int)draw(&common, 3);
    at += of->counts[block];
    out_at += of->counts[block];
  }
}

/* Types and displacements of alltoallw, and large counts. MPI reads the lists until the call is
 * complete. */
static void make_lists(Call* of) {
  for (int r = 0; r < of->size; ++r) {
    of->types[r] = of->in_by.type;
    of->out_types[r] = of->out_by.type;
    of->byte_places[r] = of->places[r] * of->in_by.extent * (int)sizeof(int);
    of->out_byte_places[r] = of->out_places[r] * of->out_by.extent * (int)sizeof(int);
#if HAS_LARGE
    const int is_w = of->kind == kAlltoallw;
    of->large[r] = of->counts[r];
    of->out_large[r] = of->out_counts[r];
    of->large_places[r] = is_w ? of->byte_places[r] : of->places[r];
    of->out_large_places[r] = is_w ? of->out_byte_places[r] : of->out_places[r];
#endif
  }
}

static void draw_call(Call* of, const Member* in) {
  do {
    of->kind = (Kind)draw(&common, kKinds);
  } while (of->kind == kNeighbours && !in->is_ring);
  of->form = (Form)draw(&common, 3);
  if (of->kind == kMessage && of->form == kBlocking) of->form = kNonblocking;
  of->is_large = HAS_LARGE && draw(&common, 3) == 0;
  of->in_place = (int)draw(&common, 3) == 0;
  of->root = (int)draw(&common, 1000);
  of->is_long = draw(&common, 16) == 0;
  of->length = (int)draw(&common, of->is_long ? 100000 : draw(&common, 8) == 0 ? 3000 : 20);
  if (draw(&common, 8) == 0) of->length = 0;
  const uint32_t op = draw(&common, 5);
  if (!of->is_in) return;
  of->root %= of->size;
  of->op = op == 0 ? MPI_MAX : MPI_SUM;
  of->is_own_op = is_reduction(of->kind) && (op == 1 || op == 4);
  of->keeps_first = of->is_own_op && op == 4;
  if (of->is_own_op) MPI_Op_create(of->keeps_first ? keep_first : add, !of->keeps_first, &of->op);
  if (of->kind == kReduceScatter || has_lists(of->kind)) draw_lists(of);
  int longest = of->length;
  for (int r = 0; r < of->size && (of->kind == kReduceScatter || has_lists(of->kind)); ++r) {
    longest = longest > of->counts[r] ? longest : of->counts[r];
  }
  of->middle = 2 * of->size * (longest + 4) + 3 * longest + 8;
  of->room = 2 * of->middle;
  of->in = malloc((size_t)of->room * sizeof(int));
  of->out = malloc((size_t)of->room * sizeof(int));
  of->want = malloc((size_t)of->room * sizeof(int));
  if (!of->in || !of->out || !of->want) fail("out of memory");
}

static void draw_layouts(Call* of) {
  const Kind kind = of->kind;
  const int is_listed = has_lists(kind), is_free = !is_reduction(kind);
  const int in_blocks = kind == kScatter || kind == kAlltoall || kind == kScatterv ||
                        kind == kAlltoallv || kind == kAlltoallw;
  const int out_blocks = kind == kAllgather || kind == kGather || kind == kAlltoall ||
                         kind == kNeighbours || kind == kAllgatherv || kind == kGatherv ||
                         kind == kAlltoallv || kind == kAlltoallw;
  /* Blocks of lists lie where the lists say. A single block of another length is in order. */
  of->in_by =
      make_layout(of->length, in_blocks ? of->size : 1, is_listed && in_blocks ? of->places : NULL,
                  is_free && (!is_listed || in_blocks), of->is_plain, of->in, of->middle);
  of->out_by = make_layout(
      of->length, out_blocks ? of->size : 1, is_listed && out_blocks ? of->out_places : NULL,
      is_free && (!is_listed || out_blocks), of->is_plain, of->out, of->middle);
  make_lists(of);
}

/* The MPIs fail in some calls with elements out of order, or with types that are freed. */
static int is_by_unisono(const Call* of, const Member* in) {
  if (of->kind == kNeighbours) return 0;
#ifdef OPEN_MPI
  if (of->form == kPersistent && in->is_of_session) return 0;
#endif
  return of->form == kBlocking || (!of->is_own_op && (in->is_known || of->form == kPersistent));
}

/* Now and then one rank comes late, so that others that wait sleep. */
static void delay(const Call* of) {
  if (draw(&common, 6) != 0) return;
  const int late = (int)draw(&common, (uint32_t)of->size);
  const struct timespec time = {0, 1000L * (long)draw(&common, 2000)};
  if (late == of->rank) nanosleep(&time, NULL);
}

static void start_call(Call* of, int index) {
  Member* const in = &members[index];
  memset(of, 0, sizeof *of);
  of->is_used = 1;
  of->comm = index;
  of->is_in = is_usable(in);
  of->rank = in->rank;
  of->size = in->size;
  of->is_of_session = in->is_of_session;
  of->salt = step;
  of->request = MPI_REQUEST_NULL;
  draw_call(of, in);
  if (!of->is_in) return;
  if (of->kind == kMessage && !is_at_root(of) && of->rank != (of->root + 1) % of->size) {
    free(of->in);
    free(of->out);
    free(of->want);
    of->is_in = 0;
    return;
  }
  of->is_plain = is_plain || (of->kind != kMessage && !is_by_unisono(of, in));
  draw_layouts(of);
  fill(of);
  delay(of);
  if (make(of, in->comm) != MPI_SUCCESS) fail("a call failed");
  in->is_known = in->is_known || (of->form != kNonblocking && of->kind < kNeighbours);
  if (of->form == kPersistent) MPI_Start(&of->request);
  of->may_start = of->form == kPersistent;
  of->is_active = 1;
  if (!of->is_plain) free_objects(of);
  if (of->form == kBlocking) {
    completed(of);
    end_call(of);
  }
}

/* A persistent call once more, with other values. */
static void start_again(Call* of) {
  if (!of->is_in || !of->may_start) return;
  wait_for(of);
  of->salt = step;
  fill(of);
  MPI_Start(&of->request);
  of->is_active = 1;
}

/* Open MPI ends a program that frees a communicator on which a nonblocking collective of its own is
 * open. The same holds for its persistent ones. */
static void free_communicator(int index) {
  Member* const of = &members[index];
  for (int i = 0; i < kSlots; ++i) {
    Call* const call = &calls[i];
    if (!call->is_used || call->comm != index) continue;
    if (call->is_plain || call->form == kPersistent) end_call(call);
    call->may_start = 0;
    call->comm = -1;
  }
  if (of->comm != MPI_COMM_NULL) MPI_Comm_free(&of->comm);
}

#if HAS_SESSIONS
static void end_all_calls(void) {
  for (int i = 0; i < kSlots; ++i) end_call(&calls[i]);
}
#endif

static void one_step(void) {
  const uint32_t what = draw(&common, 16), slot = draw(&common, kSlots);
  const int index = (int)draw(&common, kComms);
  if (what < 9) {
    end_call(&calls[slot]);
    start_call(&calls[slot], index);
  } else if (what < 12) {
    complete_some();
  } else if (what < 14) {
    if (calls[slot].is_used) start_again(&calls[slot]);
  } else if (index > 0) {
    const int from = (int)draw(&common, (uint32_t)index);
    const int is_first = draw(&common, 4) != 0;
    free_communicator(index);
    make_communicator(&members[index], &members[from]);
    if (is_first && members[index].comm != MPI_COMM_NULL) {
      MPI_Barrier(members[index].comm);
      members[index].is_known = 1;
    }
  }
}

static void one_program(int steps) {
  common = state_of(seed + 1);
  hash = 0;
  members[0].comm = MPI_COMM_WORLD;
  describe(&members[0], 0, 0);
  if (members[0].size > kMostRanks) fail("too many ranks");
  for (int i = 1; i < kComms; ++i) {
    members[i].comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &members[i].comm);
    describe(&members[i], 0, 0);
  }
  for (step = 0; step < steps; ++step) {
    const uint64_t whole = common;
    own = state_of(whole + 1000 * (uint64_t)(world_rank + 1));
    one_step(); /* ranks that take no part draw less */
    common = state_of(whole + (uint64_t)step);
  }
  for (int i = 0; i < kSlots; ++i) end_call(&calls[i]);
  for (int i = 1; i < kComms; ++i) free_communicator(i);
}

int main(int argc, char** argv) {
  const unsigned long long first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  const int steps = argc > 2 ? atoi(argv[2]) : 200;
  const unsigned long long programs = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  is_plain = argc > 4;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
#if HAS_SESSIONS
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
#endif
  for (seed = first; seed < first + programs; ++seed) {
    one_program(steps);
    print_hashes(seed, steps, hash);
  }
#if HAS_SESSIONS
  MPI_Session_finalize(&session);
#endif
  MPI_Finalize();
  return 0;
}
