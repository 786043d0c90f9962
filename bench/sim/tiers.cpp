// SPDX-License-Identifier: BSD-3-Clause
// How fast the tiers simulate: step events a second (sends, waits, reductions of all ranks) over
// the number of ranks, on one core, apart from the time to compile the schedules. And how much
// memory that takes: the most bytes that programs and simulation had at a time, by event. Usage:
// tiers [MOST_RANKS]
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>

#include "algorithm/algorithm.hpp"
#include "sim/collapse.hpp"
#include "sim/events.hpp"
#include "sim/sweep.hpp"

namespace {

// This program has one thread. Not inlined: GCC warns of free() for what new made.
std::size_t bytes_now = 0;
std::size_t bytes_most = 0;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const made = std::malloc(std::max<std::size_t>(bytes, 1));
  if (made == nullptr) throw std::bad_alloc();
  bytes_now += malloc_usable_size(made);
  bytes_most = std::max(bytes_most, bytes_now);
  return made;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* const made = std::aligned_alloc(static_cast<std::size_t>(alignment), bytes);
  if (made == nullptr) throw std::bad_alloc();
  bytes_now += malloc_usable_size(made);
  bytes_most = std::max(bytes_most, bytes_now);
  return made;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) bytes_now -= malloc_usable_size(memory);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  operator delete(memory);
}

namespace unisono {
namespace {

model::Machine machine() {
  const auto value = [](double number, model::Unit unit) {
    return model::Value{number, 0, unit, model::Origin::assumed, "benchmark"};
  };
  model::PathParameters path;
  path.level = model::Level::hosts;
  path.latency = value(1.5, model::Unit::us);
  path.overhead = value(0.4, model::Unit::us);
  path.gap = value(0.6, model::Unit::us);
  path.gap_per_byte = value(0.1, model::Unit::ns_per_byte);
  path.reception.points = {{0, value(0.3, model::Unit::us)}};
  path.reduction = {{std::nullopt, std::nullopt, {{{8, value(20, model::Unit::ns)}}}}};
  model::Machine machine;
  machine.hosts = 1 << 24;
  machine.paths = {path};
  return machine;
}

// Time of this thread's core: other programs of the machine do not count.
double seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Repeats short runs until they have taken half a second.
template <typename Run>
double time_of(const Run& run) {
  const double begin = seconds();
  int runs = 0;
  do {
    run();
    ++runs;
  } while (seconds() - begin < 0.5);
  return (seconds() - begin) / runs;
}

// The most bytes at a time since the last call.
std::size_t take_most_bytes() {
  const std::size_t most = bytes_most;
  bytes_most = bytes_now;
  return most;
}

void line(const char* tier, const std::string& what, int ranks, double events, double time,
          std::size_t bytes) {
  const auto most = static_cast<double>(bytes);
  std::printf(
      "%-14s %-24s %8d %12.0f events %8.1f M/s %7.2f ns %7.1f MiB %8.1f B/event %6.0f B/rank\n",
      tier, what.c_str(), ranks, events, events / time / 1e6, time * 1e9 / events, most / (1 << 20),
      most / events, most / ranks);
  std::fflush(stdout);
}

void measure(schedule::Collective collective, const char* name, int ranks, bool with_events) {
  const algorithm::Algorithm* row = algorithm::find(collective, name);
  const bool barrier = collective == schedule::Collective::barrier;
  const schedule::Shape shape{collective, ranks, 0, barrier ? 0 : 1};
  const algorithm::Parameters parameters = algorithm::default_parameters(*row, shape);
  const model::Machine costs = machine();
  const model::Work work{model::Engine::any, arith::Type::float64, arith::Operator::sum, true};
  const auto schedule_of = [&](int rank) {
    return base::Result<schedule::Schedule>(row->build(shape, parameters, rank));
  };
  const std::string what = std::string(schedule::collective_name(collective)) + "/" + name;
  const auto timed = [&](const char* tier, double events, const auto& run) {
    take_most_bytes();
    const double time = time_of(run);
    line(tier, what, ranks, events, time, take_most_bytes());
  };
  take_most_bytes();
  const double begin = seconds();
  const auto programs = *sim::ProgramSet::compile(ranks, schedule_of, costs, work);
  const auto steps = static_cast<double>(programs.step_count());
  line("compile", what, ranks, steps, seconds() - begin, take_most_bytes());
  if (programs.uniform()) {
    timed("sweep by step", steps, [&] { sim::sweep_steps(programs, {}); });
    const auto alike = *sim::ProgramSet::compile_alike(ranks, schedule_of, costs, work);
    timed("collapse", static_cast<double>(alike.program(0).count),
          [&] { sim::collapse_alike(alike); });
  }
  timed("sweep by rank", steps, [&] { sim::sweep_ranks(programs, {}); });
  if (!with_events) return;
  const auto simulated = *sim::simulate_events(programs, {});
  take_most_bytes();
  const double time = time_of([&] { (void)sim::simulate_events(programs, {}); });
  const std::size_t bytes = take_most_bytes();
  line("events", what + " steps", ranks, steps, time, bytes);
  line("events", what + " queue", ranks, static_cast<double>(simulated.events), time, bytes);
}

}  // namespace
}  // namespace unisono

int main(int argument_count, char** arguments) {
  const int most = argument_count > 1 ? std::atoi(arguments[1]) : 1 << 20;
  for (int ranks = 1 << 10; ranks <= most; ranks *= 4) {
    unisono::measure(unisono::schedule::Collective::barrier, "dissemination", ranks, true);
    unisono::measure(unisono::schedule::Collective::allreduce, "pairwise", ranks, false);
  }
  if (most >= 1 << 16) {
    unisono::measure(unisono::schedule::Collective::reduce, "fnomial", 1 << 16, true);
  }
  return 0;
}
