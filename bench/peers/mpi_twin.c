/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The MPI twin of `unisono bench`: the same collectives, the same two methods (loop: one clock
 * around back-to-back calls, the slowest rank's time, median of the loops; single: each call timed
 * alone with a barrier before it, averaged over the ranks), the same processor time (of the calling
 * thread, and in the loops of the process's others), the same adaptation to a time per line, the
 * same changing values, all verified. float32 and sum. Writes JSON on rank 0. Those whose names
 * end in v have unequal blocks, as in tools/bench/measure/subject.hpp (--uneven).
 *
 *   mpirun -n 4 mpi_twin --collectives barrier,allreduce --sizes 8,1024 --seconds 0.3
 *
 * With --turns N, in a process with the drop-in, it compares the program's calls with those of the
 * MPI itself (without the drop-in) by turns, so that both meet the machine in the same state: N
 * turns of a loop and of single calls each. Single calls follow a barrier of the same side.
 *
 * With --operations N it writes instead how long each of N calls in a row took on rank 0, and the
 * processor time of one, as bench/nic/path_twin does; with --late-us as well, how long after the
 * last rank's call, which comes so much later than the others', all have returned.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOPS = 7, FEWEST_LOOPS = 3, TRIALS = 3, TRIAL_CALLS = 4, FEWEST_TRIALS = 64 };
enum { FEWEST_SAMPLES = 5, PERIOD = 61 };
enum { MOST_CALLS = 1000000, MOST_SAMPLES = 100000, MOST_SIZES = 64, MOST_BUFFERS = 4 };
enum { WARM_UP = 100, SLEPT_FROM_US = 1000, MOST_TURNS = 1000, TURN_SAMPLES = 200 };

enum collective {
  BARRIER,
  BROADCAST,
  REDUCE,
  ALLREDUCE,
  ALLGATHER,
  GATHER,
  SCATTER,
  ALLTOALL,
  REDUCE_SCATTER, /* of equal blocks */
  SCAN,
  EXSCAN,
  ALLGATHERV, /* from here on of unequal blocks */
  GATHERV,
  SCATTERV,
  ALLTOALLV,
  REDUCE_SCATTERV,
  COLLECTIVES
};
static const char* const names[COLLECTIVES] = {
    "barrier", "broadcast", "reduce",         "allreduce",      "allgather", "gather",
    "scatter", "alltoall",  "reduce_scatter", "scan",           "exscan",    "allgatherv",
    "gatherv", "scatterv",  "alltoallv",      "reduce_scatterv"};

static int rank, ranks, root;
static enum uneven { HALVES, ZEROS, ONE, UNEVEN_KINDS } uneven;
static const char* const uneven_names[UNEVEN_KINDS] = {"halves", "zeros", "one"};
static MPI_Comm measured, control; /* what the twin itself has to say goes over control */
static double seconds = 0.3;
static int64_t operations;        /* 0: the two methods */
static int64_t turns;             /* 0: no comparison with the MPI itself */
static int64_t apart_us, late_us; /* pauses before each call: of all ranks, of the last as well */
/* Rows of PERIOD values: one for each rank, then the sums of all, of those up to this one, and of
 * those before it. */
static float* pattern;

static enum collective collective;
static int count; /* elements of the vector, or of a block of it (on the average) */
/* The blocks of the input and of the output, or a single one for a whole vector. */
static struct blocks { int blocks, total, *counts, *places; } sent, received;
static int buffers; /* pairs, used in turn; a power of two */
static float *inputs[MOST_BUFFERS], *outputs[MOST_BUFFERS];
static int64_t phase, wrong;

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "mpi_twin: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

static void check(int code) {
  if (code != MPI_SUCCESS) fail("an MPI call failed");
}

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static void make_pattern(void) {
  pattern = calloc((size_t)(ranks + 3) * PERIOD, sizeof *pattern);
  if (!pattern) fail("out of memory");
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < PERIOD; ++i) {
      const float value = (float)(scramble((uint64_t)r * PERIOD + (uint64_t)i) % 127);
      pattern[r * PERIOD + i] = value;
      pattern[ranks * PERIOD + i] += value;
      if (r <= rank) pattern[(ranks + 1) * PERIOD + i] += value;
      if (r < rank) pattern[(ranks + 2) * PERIOD + i] += value;
    }
  }
}

static void fill(float* to, int row, int64_t at_phase, int n) {
  const float* values = pattern + row * PERIOD;
  int at = (int)(at_phase % PERIOD);
  for (int i = 0; i < n; ++i) {
    to[i] = values[at];
    if (++at == PERIOD) at = 0;
  }
}

static int64_t differences(const float* from, int row, int64_t at_phase, int n) {
  const float* values = pattern + row * PERIOD;
  int at = (int)(at_phase % PERIOD);
  int64_t found = 0;
  for (int i = 0; i < n; ++i) {
    found += from[i] != values[at];
    if (++at == PERIOD) at = 0;
  }
  return found;
}

/* Block `block` is of this phase, so that no block is like another. */
static int64_t phase_of(int block, int64_t at_phase) { return at_phase + 7 * block; }

static int is_unequal(void) { return collective >= ALLGATHERV; }
static int is_alltoall(void) { return collective == ALLTOALL || collective == ALLTOALLV; }
static int is_reduce_scatter(void) {
  return collective == REDUCE_SCATTER || collective == REDUCE_SCATTERV;
}
static int is_scatter(void) { return collective == SCATTER || collective == SCATTERV; }
static int is_gather(void) { return collective == GATHER || collective == GATHERV; }
static int is_allgather(void) { return collective == ALLGATHER || collective == ALLGATHERV; }

static int has_input_blocks(void) {
  return (is_scatter() && rank == root) || is_alltoall() || is_reduce_scatter();
}

static int has_output_blocks(void) {
  return (is_gather() && rank == root) || is_alltoall() || is_allgather();
}

/* `number`: a rank, or the sum of a pair's ranks. */
static int block_count(int number) {
  if (!is_unequal()) return count;
  const int odd = number % 2 != 0, least = count > 0;
  if (uneven == HALVES) return odd ? 2 * count - count / 2 : count / 2;
  if (uneven == ZEROS) return odd ? 2 * count : 0;
  return number % ranks == 1 % ranks ? ranks * count - (ranks - 1) * least : least;
}

static struct blocks make_blocks(int many) {
  struct blocks made = {.blocks = many ? ranks : 1};
  made.counts = calloc((size_t)made.blocks, sizeof(int));
  made.places = calloc((size_t)made.blocks, sizeof(int));
  if (!made.counts || !made.places) fail("out of memory");
  for (int i = 0; i < made.blocks; ++i) {
    const int number = !many ? rank : is_alltoall() ? rank + i : i;
    made.counts[i] = block_count(number);
    made.places[i] = made.total;
    made.total += made.counts[i];
  }
  return made;
}

static void free_blocks(struct blocks* blocks) {
  free(blocks->counts);
  free(blocks->places);
}

static size_t output_bytes(void) { return (size_t)received.total * sizeof(float); }
static size_t input_bytes(void) { return (size_t)sent.total * sizeof(float); }

/* The longest buffer of all ranks: all use the same number of pairs, as the turns' phases depend on
 * it. Unequal blocks count as equal ones here. */
static size_t longest_buffer(void) {
  const int blocks =
      is_gather() || is_scatter() || is_alltoall() || is_allgather() || is_reduce_scatter();
  return (size_t)count * sizeof(float) * (size_t)(blocks ? ranks : 1);
}

static void make_buffers(void) {
  sent = make_blocks(has_input_blocks());
  received = make_blocks(has_output_blocks());
  const size_t longer = input_bytes() > output_bytes() ? input_bytes() : output_bytes();
  const size_t longest = longest_buffer();
  buffers = longest <= 4096 ? 4 : longest <= (8u << 20) ? 2 : 1;
  const size_t bytes = (longer / 4096 + 1) * 4096;
  for (int i = 0; i < buffers; ++i) {
    inputs[i] = aligned_alloc(4096, bytes);
    outputs[i] = aligned_alloc(4096, bytes);
    if (!inputs[i] || !outputs[i]) fail("no memory for the buffers");
    memset(inputs[i], 0xa5, bytes);
    memset(outputs[i], 0xa5, bytes);
  }
}

static void free_buffers(void) {
  free_blocks(&sent);
  free_blocks(&received);
  for (int i = 0; i < buffers; ++i) {
    free(inputs[i]);
    free(outputs[i]);
  }
}

/* ---- whose calls ----------------------------------------------------------------------------- */

#define FUNCTIONS(X)      \
  X(Barrier)              \
  X(Bcast)                \
  X(Reduce)               \
  X(Allreduce)            \
  X(Allgather)            \
  X(Gather)               \
  X(Scatter)              \
  X(Alltoall)             \
  X(Reduce_scatter_block) \
  X(Scan) X(Exscan) X(Allgatherv) X(Gatherv) X(Scatterv) X(Alltoallv) X(Reduce_scatter)

struct functions {
#define MEMBER(name) __typeof__(&MPI_##name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
};
#define PROGRAMS(name) MPI_##name,
static const struct functions programs = {FUNCTIONS(PROGRAMS)};
#undef PROGRAMS
static const struct functions* mpi = &programs;

/* Past the drop-in: those of the library that has a function which the drop-in leaves alone. */
static struct functions find_functions_of_mpi(void) {
  Dl_info info;
  void* const known = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  void* library = NULL;
  if (known && dladdr(known, &info)) library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) fail("the MPI's library cannot be found");
  struct functions found;
#define FIND(name)                                                  \
  *(void**)&found.name = dlsym(library, "PMPI_" #name);             \
  if (!found.name) fail("the MPI's library has no PMPI_" #name);    \
  if (dlsym(RTLD_DEFAULT, "PMPI_" #name) == *(void**)&found.name) { \
    fail("--turns needs the drop-in, which is not loaded");         \
  }
  FUNCTIONS(FIND)
#undef FIND
  return found;
}

/* ---- one call -------------------------------------------------------------------------------- */

static void prepare(int turn, int64_t at_phase) {
  memset(outputs[turn], 0xa5, output_bytes());
  if (collective == BROADCAST) {
    if (rank == root) fill(outputs[turn], root, at_phase, count);
  } else if (has_input_blocks()) {
    for (int b = 0; b < ranks; ++b) {
      fill(inputs[turn] + sent.places[b], rank, phase_of(b, at_phase), sent.counts[b]);
    }
  } else if (collective != BARRIER && !is_scatter()) {
    fill(inputs[turn], rank, at_phase, sent.counts[0]);
  }
}

static int call(int64_t i) {
  float *const in = inputs[i & (buffers - 1)], *const out = outputs[i & (buffers - 1)];
  switch (collective) {
    case BARRIER:
      return mpi->Barrier(measured);
    case BROADCAST:
      return mpi->Bcast(out, count, MPI_FLOAT, root, measured);
    case REDUCE:
      return mpi->Reduce(in, out, count, MPI_FLOAT, MPI_SUM, root, measured);
    case ALLREDUCE:
      return mpi->Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, measured);
    case ALLGATHER:
      return mpi->Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, measured);
    case GATHER:
      return mpi->Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, root, measured);
    case SCATTER:
      return mpi->Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, root, measured);
    case ALLTOALL:
      return mpi->Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, measured);
    case REDUCE_SCATTER:
      return mpi->Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, measured);
    case SCAN:
      return mpi->Scan(in, out, count, MPI_FLOAT, MPI_SUM, measured);
    case EXSCAN:
      return mpi->Exscan(in, out, count, MPI_FLOAT, MPI_SUM, measured);
    case ALLGATHERV:
      return mpi->Allgatherv(in, sent.total, MPI_FLOAT, out, received.counts, received.places,
                             MPI_FLOAT, measured);
    case GATHERV:
      return mpi->Gatherv(in, sent.total, MPI_FLOAT, out, received.counts, received.places,
                          MPI_FLOAT, root, measured);
    case SCATTERV:
      return mpi->Scatterv(in, sent.counts, sent.places, MPI_FLOAT, out, received.total, MPI_FLOAT,
                           root, measured);
    case ALLTOALLV:
      return mpi->Alltoallv(in, sent.counts, sent.places, MPI_FLOAT, out, received.counts,
                            received.places, MPI_FLOAT, measured);
    case REDUCE_SCATTERV:
      return mpi->Reduce_scatter(in, out, sent.counts, MPI_FLOAT, MPI_SUM, measured);
    case COLLECTIVES:
      break;
  }
  return MPI_ERR_OTHER;
}

static int64_t block_differences(const float* from, int64_t at_phase) {
  int64_t found = 0;
  for (int r = 0; r < ranks; ++r) {
    found += differences(from + received.places[r], r, at_phase, received.counts[r]);
  }
  return found;
}

static void verify(int turn, int64_t at_phase) {
  const float* out = outputs[turn];
  switch (collective) {
    case BROADCAST:
      wrong += differences(out, root, at_phase, received.counts[0]);
      break;
    case REDUCE:
      if (rank == root) wrong += differences(out, ranks, at_phase, received.counts[0]);
      break;
    case ALLREDUCE:
      wrong += differences(out, ranks, at_phase, received.counts[0]);
      break;
    case ALLGATHER:
    case ALLGATHERV:
    case GATHER:
    case GATHERV:
      if (has_output_blocks()) wrong += block_differences(out, at_phase);
      break;
    case SCATTER:
    case SCATTERV:
      wrong += differences(out, root, phase_of(rank, at_phase), received.counts[0]);
      break;
    case ALLTOALL:
    case ALLTOALLV:
      wrong += block_differences(out, phase_of(rank, at_phase));
      break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTERV:
      wrong += differences(out, ranks, phase_of(rank, at_phase), received.counts[0]);
      break;
    case SCAN:
      wrong += differences(out, ranks + 1, at_phase, received.counts[0]);
      break;
    case EXSCAN:
      if (rank > 0) wrong += differences(out, ranks + 2, at_phase, received.counts[0]);
      break;
    case BARRIER:
    case COLLECTIVES:
      break;
  }
}

/* ---- statistics ------------------------------------------------------------------------------ */

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print_summary(const char* name, double* sample, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += sample[i];
  qsort(sample, (size_t)n, sizeof *sample, compare);
  printf(
      ", \"%s\": {\"median_us\": %.6f, \"p99_us\": %.6f, \"min_us\": %.6f, \"max_us\": %.6f, "
      "\"mean_us\": %.6f, \"samples\": %lld",
      name, (sample[(n - 1) / 2] + sample[n / 2]) / 2, sample[(99 * n + 99) / 100 - 1], sample[0],
      sample[n - 1], sum / (double)n, (long long)n);
}

static int64_t agree(int64_t value) {
  check(MPI_Bcast(&value, 1, MPI_INT64_T, 0, control));
  return value;
}

static void combine(double* values, int n, MPI_Op op) {
  check(MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, op, control));
}

/* ---- processor time -------------------------------------------------------------------------- */

/* Processor time of the calling thread, and of all threads of the process. */
struct cpu {
  int64_t caller_ns, process_ns;
};

static struct cpu cpu_now(void) {
  const int64_t caller_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  return (struct cpu){caller_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

static void add_since(struct cpu* sum, struct cpu start) {
  const struct cpu now = cpu_now();
  sum->caller_ns += now.caller_ns - start.caller_ns;
  sum->process_ns += now.process_ns - start.process_ns;
}

/* Processor time of one call, mean over the ranks: the calling thread's and the others'. */
static void print_cpu(struct cpu spent, int64_t calls) {
  const int64_t others_ns = spent.process_ns - spent.caller_ns;
  double us[2] = {(double)spent.caller_ns * 1e-3, (double)(others_ns > 0 ? others_ns : 0) * 1e-3};
  combine(us, 2, MPI_SUM);
  if (rank != 0) return;
  const double all_calls = (double)calls * ranks;
  printf(", \"cpu_us\": %.6f, \"agent_us\": %.6f", us[0] / all_calls, us[1] / all_calls);
}

/* The processor time of calls one by one. Reading its clock is a system call, which may cost more
 * than the call: the shortest reading is subtracted. */
struct call_cpu {
  int64_t sum_ns, shortest_reading_ns, start_ns;
};

static void before_call(struct call_cpu* cpu) {
  const int64_t reading_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  cpu->start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const int64_t took_ns = cpu->start_ns - reading_ns;
  if (took_ns < cpu->shortest_reading_ns) cpu->shortest_reading_ns = took_ns;
}

static void after_call(struct call_cpu* cpu) {
  cpu->sum_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu->start_ns;
}

static int64_t of_calls_ns(const struct call_cpu* cpu, int64_t calls) {
  const int64_t ns = cpu->sum_ns - calls * cpu->shortest_reading_ns;
  return ns > 0 ? ns : 0;
}

/* ---- the two methods ------------------------------------------------------------------------- */

/* Time of `calls` calls; adds the processor time spent in them. */
static double one_loop(int64_t calls, struct cpu* cpu) {
  const int used = calls < buffers ? (int)calls : buffers;
  const int64_t first = phase;
  phase += used;
  for (int i = 0; i < used; ++i) prepare(i, first + i);
  check(mpi->Barrier(measured));
  const struct cpu cpu_start = cpu_now();
  const int64_t start = clock_ns(CLOCK_MONOTONIC);
  for (int64_t i = 0; i < calls; ++i) check(call(i));
  const int64_t end = clock_ns(CLOCK_MONOTONIC);
  add_since(cpu, cpu_start);
  for (int i = 0; i < used; ++i) verify(i, first + i);
  return (double)(end - start);
}

static void measure_loop(void) {
  const double method_ns = seconds * 1e9 / 2;
  struct cpu cpu = {0, 0};
  int64_t fitting = 0;
  /* As in tools/bench/measure/measure.cpp: two loops in a row long enough; the faster counts. */
  double last = 0, last_call_ns = 1e18;
  for (int64_t calls = 1; fitting == 0; calls *= 2) {
    const double elapsed = one_loop(calls, &cpu);
    const double call_ns = elapsed / (double)calls > 1 ? elapsed / (double)calls : 1;
    const int known =
        calls >= MOST_CALLS || ((elapsed < last ? elapsed : last) >= method_ns * 0.05 &&
                                (calls >= FEWEST_TRIALS || elapsed >= method_ns));
    const int64_t fit = (int64_t)(method_ns / (call_ns < last_call_ns ? call_ns : last_call_ns));
    last = elapsed;
    last_call_ns = call_ns;
    fitting = agree(!known ? 0 : fit > 1 ? fit : 1);
  }
  const int loops = fitting < FEWEST_LOOPS ? FEWEST_LOOPS : fitting > LOOPS ? LOOPS : (int)fitting;
  int64_t calls = fitting / loops > 1 ? fitting / loops : 1;
  if (calls > MOST_CALLS) calls = MOST_CALLS;
  double times[LOOPS];
  cpu = (struct cpu){0, 0};
  for (int i = 0; i < loops; ++i) times[i] = one_loop(calls, &cpu) * 1e-3 / (double)calls;
  combine(times, loops, MPI_MAX);
  if (rank == 0) {
    print_summary("loop", times, loops);
    printf(", \"calls\": %lld", (long long)calls);
  }
  print_cpu(cpu, calls * loops);
  if (rank == 0) printf("}");
}

static void one_call(int64_t* enter, int64_t* leave, struct call_cpu* cpu) {
  const int64_t at_phase = phase++;
  prepare(0, at_phase);
  check(mpi->Barrier(measured));
  before_call(cpu);
  *enter = clock_ns(CLOCK_MONOTONIC);
  const int code = call(0);
  *leave = clock_ns(CLOCK_MONOTONIC);
  after_call(cpu);
  check(code);
  verify(0, at_phase);
}

/* Nobody may leave a barrier before all have come; the clock is one for the whole machine. */
static void judge_barriers(int64_t* enter, int64_t* leave, int n) {
  check(MPI_Allreduce(MPI_IN_PLACE, enter, n, MPI_INT64_T, MPI_MAX, control));
  check(MPI_Allreduce(MPI_IN_PLACE, leave, n, MPI_INT64_T, MPI_MIN, control));
  for (int i = 0; rank == 0 && i < n; ++i) wrong += leave[i] < enter[i];
}

static void measure_single(void) {
  const double method_ns = seconds * 1e9 / 2;
  int64_t enter_ns, leave_ns;
  struct call_cpu cpu = {0, INT64_MAX, 0};
  double call_ns = 1e18;
  for (int trial = 0; trial < TRIALS; ++trial) {
    const int64_t start = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < TRIAL_CALLS; ++i) one_call(&enter_ns, &leave_ns, &cpu);
    const double its_ns = (double)(clock_ns(CLOCK_MONOTONIC) - start) / TRIAL_CALLS;
    if (its_ns < call_ns) call_ns = its_ns;
  }
  int64_t fit = (int64_t)(method_ns / (call_ns > 1 ? call_ns : 1));
  if (fit < FEWEST_SAMPLES) fit = FEWEST_SAMPLES;
  const int n = (int)agree(fit > MOST_SAMPLES ? MOST_SAMPLES : fit);
  double* times = malloc((size_t)n * sizeof *times);
  int64_t *enter = malloc((size_t)n * sizeof *enter), *leave = malloc((size_t)n * sizeof *leave);
  if (!times || !enter || !leave) fail("out of memory");
  cpu = (struct call_cpu){0, INT64_MAX, 0};
  for (int i = 0; i < n; ++i) {
    one_call(&enter[i], &leave[i], &cpu);
    times[i] = (double)(leave[i] - enter[i]) * 1e-3 / ranks;
  }
  combine(times, n, MPI_SUM);
  if (collective == BARRIER) judge_barriers(enter, leave, n);
  double cpu_us = (double)of_calls_ns(&cpu, n) * 1e-3 / ((double)n * ranks);
  combine(&cpu_us, 1, MPI_SUM);
  if (rank == 0) {
    print_summary("single", times, n);
    printf(", \"cpu_us\": %.6f}", cpu_us);
  }
  free(times);
  free(enter);
  free(leave);
}

/* For each call, the time of the rank that reaches this point last. */
static void take_latest(int64_t* times) {
  check(MPI_Allreduce(MPI_IN_PLACE, times, (int)operations, MPI_INT64_T, MPI_MAX, control));
}

/* Long pauses are slept. In short ones a timer would count: it makes the core of who sleeps, and of
 * nobody else, do something between the calls. */
static void pause_before_call(void) {
  const int64_t us = apart_us + (rank == ranks - 1 ? late_us : 0);
  if (us >= SLEPT_FROM_US) {
    const struct timespec length = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&length, NULL);
    return;
  }
  const int64_t until = clock_ns(CLOCK_MONOTONIC) + 1000 * us;
  while (clock_ns(CLOCK_MONOTONIC) < until) sched_yield();
}

/* Calls in a row, one by one. Other threads work for a call during the pauses too: their processor
 * time is that of the whole row. */
static void measure_each(void) {
  int64_t* called = calloc((size_t)operations, sizeof *called);
  int64_t* returned = calloc((size_t)operations, sizeof *returned);
  if (!called || !returned) fail("out of memory");
  struct call_cpu cpu = {0, INT64_MAX, 0};
  struct cpu row_start = {0, 0}, row = {0, 0};
  check(MPI_Barrier(measured));
  for (int64_t i = -WARM_UP; i < operations; ++i) {
    const int64_t at_phase = phase++;
    prepare(0, at_phase);
    if (i == 0) {
      cpu.sum_ns = 0;
      row_start = cpu_now();
    }
    pause_before_call();
    before_call(&cpu);
    const int64_t start = clock_ns(CLOCK_MONOTONIC);
    const int code = call(0);
    const int64_t end = clock_ns(CLOCK_MONOTONIC);
    after_call(&cpu);
    check(code);
    verify(0, at_phase);
    if (i < 0) continue;
    called[i] = start;
    returned[i] = end;
  }
  add_since(&row, row_start);
  row.process_ns -= row.caller_ns; /* of the other threads */
  row.caller_ns = of_calls_ns(&cpu, operations);
  row.process_ns += row.caller_ns;
  print_cpu(row, operations);
  if (late_us > 0) {
    take_latest(called);
    take_latest(returned);
  }
  if (rank == 0) {
    for (int64_t i = 0; i < operations; ++i) {
      printf("%s%lld", i == 0 ? ", \"times_ns\": [" : ",", (long long)(returned[i] - called[i]));
    }
    printf("]");
  }
  free(called);
  free(returned);
}

/* ---- by turns -------------------------------------------------------------------------------- */

static double median(double* sample, int64_t n) {
  qsort(sample, (size_t)n, sizeof *sample, compare);
  return (sample[(n - 1) / 2] + sample[n / 2]) / 2;
}

/* The median of this rank's times. */
static double some_single_calls(int64_t n) {
  double times[TURN_SAMPLES];
  struct call_cpu cpu = {0, INT64_MAX, 0};
  int64_t enter_ns, leave_ns;
  for (int64_t i = 0; i < n; ++i) {
    one_call(&enter_ns, &leave_ns, &cpu);
    times[i] = (double)(leave_ns - enter_ns);
  }
  return median(times, n);
}

static int64_t fitting_calls(double call_ns, double turn_ns, int64_t most) {
  const int64_t fit = (int64_t)(turn_ns / (call_ns > 1 ? call_ns : 1));
  return agree(fit < 1 ? 1 : fit > most ? most : fit);
}

static void print_turns(const char* name, const double* ns) {
  printf("\"%s\": [", name);
  for (int64_t i = 0; i < turns; ++i) printf("%s%.4f", i == 0 ? "" : ", ", ns[i] * 1e-3);
  printf("]");
}

static void measure_by_turns(void) {
  static struct functions bare;
  if (!bare.Barrier) bare = find_functions_of_mpi();
  const struct functions* const sides[2] = {&programs, &bare};
  const char* const names_of_sides[2] = {"with", "without"};
  const double turn_ns = seconds * 1e9 / (4 * (double)turns);
  int64_t calls[2], singles[2];
  static double loops[2][MOST_TURNS], single[2][MOST_TURNS];
  struct cpu cpu = {0, 0};
  for (int side = 0; side < 2; ++side) {
    mpi = sides[side];
    /* Plans and connections. The drop-in also tries its first calls with the MPI. */
    one_loop(side == 0 ? WARM_UP : WARM_UP / 10, &cpu);
    const double call_ns = one_loop(TRIAL_CALLS, &cpu) / TRIAL_CALLS;
    calls[side] = fitting_calls(call_ns, turn_ns, MOST_CALLS);
    calls[side] =
        fitting_calls(one_loop(calls[side], &cpu) / (double)calls[side], turn_ns, MOST_CALLS);
    singles[side] = fitting_calls(call_ns, turn_ns, TURN_SAMPLES);
  }
  for (int64_t turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < 2; ++i) {
      const int side = (int)(turn + i) % 2;
      mpi = sides[side];
      loops[side][turn] = one_loop(calls[side], &cpu) / (double)calls[side];
      single[side][turn] = some_single_calls(singles[side]) / ranks;
    }
  }
  mpi = &programs;
  for (int side = 0; side < 2; ++side) {
    combine(loops[side], (int)turns, MPI_MAX);
    combine(single[side], (int)turns, MPI_SUM);
    if (rank != 0) continue;
    printf(", \"%s\": {", names_of_sides[side]);
    print_turns("loop", loops[side]);
    printf(", ");
    print_turns("single", single[side]);
    printf("}");
  }
}

/* ---- the run --------------------------------------------------------------------------------- */

static void measure(enum collective which, int64_t bytes, int first) {
  collective = which;
  count = (int)(bytes / (int64_t)sizeof(float));
  wrong = 0;
  make_buffers();
  if (rank == 0) {
    printf("%s\n  {\"collective\": \"%s\", \"size\": %lld, \"count\": %d", first ? "" : ",",
           names[which], (long long)bytes, count);
  }
  if (turns != 0) {
    measure_by_turns();
  } else if (operations != 0) {
    measure_each();
  } else {
    measure_loop();
    measure_single();
  }
  check(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, control));
  if (rank == 0) printf(", \"wrong\": %lld}", (long long)wrong);
  free_buffers();
}

static int chosen(const char* list, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return 1;
  }
  return 0;
}

static int read_sizes(const char* text, int64_t* sizes) {
  int n = 0;
  for (char* end; *text; text = *end ? end + 1 : end) {
    const int64_t bytes = strtoll(text, &end, 10);
    if (end == text || bytes < 0 || bytes % 4 != 0 || n == MOST_SIZES || (*end && *end != ',')) {
      fail("--sizes takes bytes, multiples of 4, with commas between");
    }
    sizes[n++] = bytes;
  }
  return n;
}

static enum uneven read_uneven(const char* name) {
  for (int i = 0; i < UNEVEN_KINDS; ++i) {
    if (strcmp(name, uneven_names[i]) == 0) return (enum uneven)i;
  }
  fail("--uneven takes halves, zeros or one");
}

int main(int argc, char** argv) {
  const char *collectives = NULL, *size_list = "8,1024"; /* NULL: all */
  int64_t sizes[MOST_SIZES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) fail("an option lacks its value");
    if (strcmp(argv[i], "--collectives") == 0)
      collectives = argv[i + 1];
    else if (strcmp(argv[i], "--sizes") == 0)
      size_list = argv[i + 1];
    else if (strcmp(argv[i], "--seconds") == 0)
      seconds = atof(argv[i + 1]);
    else if (strcmp(argv[i], "--root") == 0)
      root = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--uneven") == 0)
      uneven = read_uneven(argv[i + 1]);
    else if (strcmp(argv[i], "--operations") == 0)
      operations = atoll(argv[i + 1]);
    else if (strcmp(argv[i], "--turns") == 0)
      turns = atoll(argv[i + 1]);
    else if (strcmp(argv[i], "--apart-us") == 0)
      apart_us = atoll(argv[i + 1]);
    else if (strcmp(argv[i], "--late-us") == 0)
      late_us = atoll(argv[i + 1]);
    else
      fail(
          "options: --collectives a,b --sizes 8,1024 --seconds 0.3 --root 0 --uneven halves "
          "--operations 0 --turns 0 --apart-us 0 --late-us 0");
  }
  if (root < 0 || root >= ranks) fail("--root takes a rank");
  if (turns < 0 || turns > MOST_TURNS) fail("--turns takes a number up to 1000");
  const int n = read_sizes(size_list, sizes);
  check(MPI_Comm_dup(MPI_COMM_WORLD, &measured));
  check(MPI_Comm_dup(MPI_COMM_WORLD, &control));
  make_pattern();
  if (rank == 0) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n\",")] = 0;
    for (char* c = library; *c; ++c) {
      if (*c == '\t') *c = ' ';
    }
    printf("{\"tool\": \"mpi_twin\", \"library\": \"%s\", \"ranks\": %d, \"results\": [", library,
           ranks);
  }
  int first = 1;
  for (int c = 0; c < COLLECTIVES; ++c) {
    if (collectives && !chosen(collectives, names[c])) continue;
    for (int i = 0; i < (c == BARRIER ? 1 : n); ++i, first = 0) {
      measure((enum collective)c, c == BARRIER ? 0 : sizes[i], first);
    }
  }
  if (rank == 0) printf("\n]}\n");
  free(pattern);
  MPI_Finalize();
  return 0;
}
