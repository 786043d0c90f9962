/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random collectives of several threads: random_threads SEED STEPS PROGRAMS, with the seeds SEED,
 * SEED + 1, ... The threads of a rank call MPI at once (MPI_THREAD_MULTIPLE), each on communicators
 * of its own: duplicates of MPI_COMM_WORLD, and others that the thread makes and frees meanwhile.
 * Some calls are nonblocking or persistent, beside a message that the thread waits for. Now and
 * then a thread of one rank comes late. Each checks its results. Prints "fine", or "none" if the
 * MPI has no such level of threads. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "persistent.h"

enum { kThreads = 3, kMostRanks = 16, kLongest = 60000 };

static int world_rank, steps;
static unsigned long long seed;

typedef struct {
  uint64_t state;
  int number, step;
  MPI_Comm first, comm;
  int rank, size;
  int in[kLongest], out[kLongest], more[kLongest];
} Thread;

static uint32_t draw(Thread* of, uint32_t below) { /* xorshift*; the same at all ranks */
  of->state ^= of->state >> 12;
  of->state ^= of->state << 25;
  of->state ^= of->state >> 27;
  return (uint32_t)((of->state * 2685821657736338717ULL) >> 33) % below;
}

static int value(const Thread* of, int from, int to, int i) {
  return (of->step * 31 + of->number * 11 + from * 7 + to * 13 + i * 3) % 101;
}

static void expect(const Thread* of, const char* what, int i, int got, int want) {
  if (got == want) return;
  fprintf(stderr, "seed %llu: rank %d: thread %d: step %d: %s: int %d is %d and not %d\n", seed,
          world_rank, of->number, of->step, what, i, got, want);
  MPI_Abort(MPI_COMM_WORLD, 3);
  _Exit(3); /* MPICH 5 comes back */
}

static int sum_of(const Thread* of, int end, int to, int i) {
  int sum = 0;
  for (int r = 0; r < end; ++r) sum += value(of, r, to, i);
  return sum;
}

/* The value of the first rank: does not commute. */
static void keep_first(void* in, void* target, int* count, MPI_Datatype* type) {
  (void)type;
  memcpy(target, in, (size_t)*count * sizeof(int));
}
static MPI_Op first_of;

static void delay(Thread* of) {
  if (draw(of, 8) != 0) return;
  const int late = (int)draw(of, (uint32_t)of->size);
  const struct timespec time = {0, 1000L * (long)draw(of, 1000)};
  if (late == of->rank) nanosleep(&time, NULL);
}

/* Beside a message from the rank before. */
static void complete(Thread* of, MPI_Request* request) {
  const int to = (of->rank + 1) % of->size, from = (of->rank + of->size - 1) % of->size;
  const uint32_t way = draw(of, 4);
  int sent = value(of, of->rank, to, 77), got = -1, index, done = 0;
  MPI_Request both[2] = {*request, MPI_REQUEST_NULL};
  MPI_Irecv(&got, 1, MPI_INT, from, 3, of->comm, &both[1]);
  if (way == 0) {
    MPI_Send(&sent, 1, MPI_INT, to, 3, of->comm);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  } else if (way == 1) {
    MPI_Send(&sent, 1, MPI_INT, to, 3, of->comm);
    for (int i = 0; i < 2; ++i) MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
  } else if (way == 2) {
    MPI_Wait(&both[0], MPI_STATUS_IGNORE);
    MPI_Send(&sent, 1, MPI_INT, to, 3, of->comm);
    MPI_Wait(&both[1], MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&sent, 1, MPI_INT, to, 3, of->comm);
    while (!done) MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
  }
  *request = both[0];
  expect(of, "message", 0, got, value(of, from, of->rank, 77));
}

#define CALL(name, nonblocking, ...)                              \
  do {                                                            \
    MPI_Request request_of_call;                                  \
    const uint32_t form = draw(of, 6);                            \
    delay(of);                                                    \
    if (form <= 1) {                                              \
      MPI_##nonblocking(__VA_ARGS__, of->comm, &request_of_call); \
      complete(of, &request_of_call);                             \
    } else if (form == 2) {                                       \
      PERSISTENT(name)                                            \
      (__VA_ARGS__, of->comm, MPI_INFO_NULL, &request_of_call);   \
      MPI_Start(&request_of_call);                                \
      complete(of, &request_of_call);                             \
      MPI_Request_free(&request_of_call);                         \
    } else {                                                      \
      MPI_##name(__VA_ARGS__, of->comm);                          \
    }                                                             \
  } while (0)

static void reduction(Thread* of, int length) {
  const int which = (int)draw(of, 4), root = (int)draw(of, (uint32_t)of->size);
  const int is_own = draw(of, 3) == 0, in_place = (int)draw(of, 2);
  const MPI_Op op = is_own ? first_of : MPI_SUM;
  const int end = which == 2 ? of->rank + 1 : of->size;
  int* const place = in_place && which != 1 ? of->out : of->in;
  for (int i = 0; i < length; ++i) place[i] = value(of, of->rank, 0, i);
  const void* const from = in_place && which != 1 ? MPI_IN_PLACE : of->in;
  if (which == 0)
    CALL(Allreduce, Iallreduce, from, of->out, length, MPI_INT, op);
  else if (which == 1)
    CALL(Reduce, Ireduce, of->in, of->out, length, MPI_INT, op, root);
  else if (which == 2)
    CALL(Scan, Iscan, from, of->out, length, MPI_INT, op);
  else
    CALL(Allreduce, Iallreduce, from, of->out, length, MPI_INT, MPI_MAX);
  if (which == 1 && of->rank != root) return;
  for (int i = 0; i < length; ++i) {
    int want = is_own ? value(of, 0, 0, i) : sum_of(of, end, 0, i);
    if (which == 3) {
      want = 0;
      for (int r = 0; r < of->size; ++r) {
        if (value(of, r, 0, i) > want) want = value(of, r, 0, i);
      }
    }
    expect(of, "reduction", i, of->out[i], want);
  }
}

static void blocks(Thread* of, int length) {
  int counts[kMostRanks], places[kMostRanks], all = 0;
  const int which = (int)draw(of, 5), root = (int)draw(of, (uint32_t)of->size);
  const int short_one = (int)draw(of, (uint32_t)of->size);
  const int each = length / of->size, is_even = which >= 3;
  for (int r = 0; r < of->size; ++r) {
    counts[r] = r == short_one && !is_even ? each / 50 : each;
    places[r] = all;
    all += counts[r];
  }
  const int own = counts[of->rank];
  if (which == 0) {
    for (int i = 0; i < all; ++i) of->in[i] = value(of, of->rank, 0, i);
    CALL(Reduce_scatter, Ireduce_scatter, of->in, of->out, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < own; ++i) {
      expect(of, "reduce_scatter", i, of->out[i], sum_of(of, of->size, 0, places[of->rank] + i));
    }
  } else if (which == 1) {
    for (int i = 0; i < own; ++i) of->out[places[of->rank] + i] = value(of, of->rank, 0, i);
    CALL(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_INT, of->out, counts, places, MPI_INT);
  } else if (which == 2) {
    for (int i = 0; i < own; ++i) of->in[i] = value(of, of->rank, 0, i);
    CALL(Gatherv, Igatherv, of->in, own, MPI_INT, of->out, counts, places, MPI_INT, root);
  } else if (which == 3) {
    for (int i = 0; i < all; ++i)
      of->in[i] = value(of, of->rank, i / (each + !each), i % (each + !each));
    CALL(Alltoall, Ialltoall, of->in, each, MPI_INT, of->out, each, MPI_INT);
  } else {
    for (int i = 0; i < length; ++i) of->out[i] = of->rank == root ? value(of, root, 0, i) : -1;
    CALL(Bcast, Ibcast, of->out, length, MPI_INT, root);
    for (int i = 0; i < length; ++i) expect(of, "bcast", i, of->out[i], value(of, root, 0, i));
  }
  if (which == 0 || which == 4 || (which == 2 && of->rank != root)) return;
  for (int r = 0; r < of->size; ++r) {
    for (int i = 0; i < counts[r]; ++i) {
      expect(of, "blocks", i, of->out[places[r] + i], value(of, r, which == 3 ? of->rank : 0, i));
    }
  }
}

static void renew(Thread* of) {
  if (of->comm != of->first) MPI_Comm_free(&of->comm);
  of->comm = of->first;
  const uint32_t way = draw(of, 3);
  int rank;
  MPI_Comm_rank(of->first, &rank);
  if (way == 0) MPI_Comm_dup(of->first, &of->comm);
  if (way == 1) MPI_Comm_split(of->first, rank % 2, -rank, &of->comm);
  MPI_Comm_rank(of->comm, &of->rank);
  MPI_Comm_size(of->comm, &of->size);
}

static void* run(void* thread) {
  Thread* const of = thread;
  of->comm = of->first;
  MPI_Comm_rank(of->comm, &of->rank);
  MPI_Comm_size(of->comm, &of->size);
  for (of->step = 0; of->step < steps; ++of->step) {
    /* Ranks of different communicators draw differently: so all begin a step alike. */
    const uint64_t whole = of->state;
    const uint32_t what = draw(of, 12);
    const int length = (int)draw(of, draw(of, 8) == 0 ? kLongest : 200);
    if (what == 0)
      renew(of);
    else if (of->size > 1 && what == 1)
      MPI_Barrier(of->comm);
    else if (of->size > 1 && what < 7)
      reduction(of, length);
    else if (of->size > 1)
      blocks(of, length);
    of->state = whole * 6364136223846793005ULL + 1442695040888963407ULL;
  }
  if (of->comm != of->first) MPI_Comm_free(&of->comm);
  return NULL;
}

static void one_program(Thread* threads) {
  pthread_t others[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    threads[i].number = i;
    threads[i].state = (seed * kThreads + (unsigned)i) * 2654435761U + 88172645463325252ULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].first);
  }
  for (int i = 1; i < kThreads; ++i) pthread_create(&others[i], NULL, run, &threads[i]);
  run(&threads[0]);
  for (int i = 1; i < kThreads; ++i) pthread_join(others[i], NULL);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&threads[i].first);
}

int main(int argc, char** argv) {
  static Thread threads[kThreads];
  const unsigned long long first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  steps = argc > 2 ? atoi(argv[2]) : 60;
  const unsigned long long programs = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Op_create(keep_first, 0, &first_of);
  for (seed = first; seed < first + programs && provided == MPI_THREAD_MULTIPLE; ++seed) {
    one_program(threads);
  }
  MPI_Op_free(&first_of);
  if (world_rank == 0) puts(provided == MPI_THREAD_MULTIPLE ? "fine" : "none");
  MPI_Finalize();
  return 0;
}
