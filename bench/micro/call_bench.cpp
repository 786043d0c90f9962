// SPDX-License-Identifier: BSD-3-Clause
// What a repeated call costs besides communication, in three ways, none of which needs a second
// core:
//
// call/COLLECTIVE   whole C calls of 8 bytes on a job of one rank: no message is sent and nobody is
//                   waited for, so all of it is overhead: arguments, plan, the engine's begin, its
//                   one copy, its completion. The same call each time, as in a loop.
// alternating/...   the same where each call differs from the one before: in its buffers, or in its
//                   operator, for which the plan is looked up.
// entry/...         from the entry into unisono_reduce to the first instruction of the reduction,
//                   with a real message: two ranks of one thread, of which the first has sent
//                   already. An operator of this file reads the clock; one reading of it is in the
//                   figure, and `clock` says how long that takes. This is what lies before the
//                   engine's first step, and that step, which finds the message.
//
// The jobs are ranks as threads: the same code as between processes, from the C API down.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "unisono/unisono.h"

namespace {

using Clock = std::chrono::steady_clock;

void require(int error, const char* what) {
  if (error == UNISONO_OK) return;
  std::fprintf(stderr, "call_bench: %s: %s\n", what, unisono_last_error());
  std::abort();
}

// A job of one or two ranks; after it has started, one thread acts for all of them.
class Job {
 public:
  explicit Job(int ranks) : ranks_(ranks) {
    require(unisono_threads_create(ranks, &threads_), "create");
    const auto join = [this](int rank) {
      require(unisono_init_thread(threads_, rank, &worlds_[rank]), "init");
    };
    std::thread second;
    if (ranks == 2) second = std::thread(join, 1);
    join(0);
    if (second.joinable()) second.join();
  }
  ~Job() {
    for (int rank = 0; rank < ranks_; ++rank) unisono_finalize(worlds_[rank]);
    unisono_threads_free(threads_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  unisono_comm_t world(int rank) const { return worlds_[rank]; }

 private:
  int ranks_;
  unisono_threads_t threads_ = nullptr;
  unisono_comm_t worlds_[2] = {};
};

template <class Call>
void repeat(benchmark::State& state, Call call) {
  const Job job(1);
  const unisono_comm_t world = job.world(0);
  std::int64_t in[2] = {1, 2};
  std::int64_t out[2] = {};
  int turn = 0;
  require(call(world, in, out, turn), "first call");
  for (auto _ : state) {
    turn ^= 1;
    require(call(world, in, out, turn), "repeated call");
    benchmark::ClobberMemory();
  }
}

void barrier(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t*, std::int64_t*, int) {
    return unisono_barrier(world);
  });
}

void broadcast(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t* in, std::int64_t*, int) {
    return unisono_broadcast(in, 1, UNISONO_INT64, 0, world);
  });
}

void reduce(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t* in, std::int64_t* out, int) {
    return unisono_reduce(in, out, 1, UNISONO_INT64, UNISONO_SUM, 0, world);
  });
}

void allreduce(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t* in, std::int64_t* out, int) {
    return unisono_allreduce(in, out, 1, UNISONO_INT64, UNISONO_SUM, world);
  });
}

void allgather(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t* in, std::int64_t* out, int) {
    return unisono_allgather(in, out, 1, UNISONO_INT64, world);
  });
}

void alternating_buffers(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t* in, std::int64_t* out, int turn) {
    return unisono_allreduce(in + turn, out + turn, 1, UNISONO_INT64, UNISONO_SUM, world);
  });
}

void alternating_operators(benchmark::State& state) {
  repeat(state, [](unisono_comm_t world, std::int64_t* in, std::int64_t* out, int turn) {
    return unisono_allreduce(in, out, 1, UNISONO_INT64, turn == 0 ? UNISONO_SUM : UNISONO_MAX,
                             world);
  });
}

void clock_reading(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Clock::now());
}

// The operator, and when it was last entered.
void note_time(void* target, const void* left, const void* right, std::int64_t, unisono_type_t,
               void* user) {
  *static_cast<Clock::time_point*>(user) = Clock::now();
  *static_cast<std::int64_t*>(target) =
      *static_cast<const std::int64_t*>(left) + *static_cast<const std::int64_t*>(right);
}

void entry_of_reduce(benchmark::State& state) {
  static Clock::time_point entered;
  unisono_op_t op = -1;
  require(unisono_op_create(note_time, 1, &entered, &op), "operator");
  const Job job(2);
  const std::int64_t in[2] = {1, 2};
  std::int64_t out = 0;
  const auto call = [&](int rank) {
    return unisono_reduce(&in[rank], &out, 1, UNISONO_INT64, op, 1, job.world(rank));
  };
  for (auto _ : state) {
    require(call(0), "reduce at the sender");
    const Clock::time_point start = Clock::now();
    require(call(1), "reduce at the root");
    state.SetIterationTime(std::chrono::duration<double>(entered - start).count());
  }
}

BENCHMARK(barrier)->Name("call/barrier");
BENCHMARK(broadcast)->Name("call/broadcast");
BENCHMARK(reduce)->Name("call/reduce");
BENCHMARK(allreduce)->Name("call/allreduce");
BENCHMARK(allgather)->Name("call/allgather");
BENCHMARK(alternating_buffers)->Name("alternating/buffers");
BENCHMARK(alternating_operators)->Name("alternating/operators");
BENCHMARK(entry_of_reduce)->Name("entry/reduce")->UseManualTime();
BENCHMARK(clock_reading)->Name("clock");

}  // namespace
