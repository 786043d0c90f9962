// SPDX-License-Identifier: BSD-3-Clause
// How fast the tiers simulate: step events a second (sends, waits, reductions of all ranks) over
// the number of ranks, on one core, apart from the time to compile the schedules. Usage: tiers
// [MOST_RANKS]
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "algorithm/algorithm.hpp"
#include "sim/collapse.hpp"
#include "sim/events.hpp"
#include "sim/sweep.hpp"

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

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
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

void line(const char* tier, const std::string& what, int ranks, double events, double time) {
  std::printf("%-14s %-24s %8d %12.0f %10.4f s %8.1f M/s %7ld MiB\n", tier, what.c_str(), ranks,
              events, time, events / time / 1e6, peak_mib());
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
  const double begin = seconds();
  const auto programs = *sim::ProgramSet::compile(ranks, schedule_of, costs, work);
  const auto steps = static_cast<double>(programs.step_count());
  line("compile", what, ranks, steps, seconds() - begin);
  if (programs.uniform()) {
    line("sweep by step", what, ranks, steps, time_of([&] { sim::sweep_steps(programs, {}); }));
    const auto alike = *sim::ProgramSet::compile_alike(ranks, schedule_of, costs, work);
    line("collapse", what, ranks, static_cast<double>(alike.program(0).count),
         time_of([&] { sim::collapse_alike(alike); }));
  }
  line("sweep by rank", what, ranks, steps, time_of([&] { sim::sweep_ranks(programs, {}); }));
  if (!with_events) return;
  const auto simulated = *sim::simulate_events(programs, {});
  const double time = time_of([&] { (void)sim::simulate_events(programs, {}); });
  line("events", what + " steps", ranks, steps, time);
  line("events", what + " queue", ranks, static_cast<double>(simulated.events), time);
}

}  // namespace
}  // namespace unisono

int main(int argument_count, char** arguments) {
  const int most = argument_count > 1 ? std::atoi(arguments[1]) : 1 << 20;
  for (int ranks = 1 << 10; ranks <= most; ranks *= 32) {
    unisono::measure(unisono::schedule::Collective::barrier, "dissemination", ranks, true);
    unisono::measure(unisono::schedule::Collective::allreduce, "pairwise", ranks, false);
  }
  if (most >= 1 << 16) {
    unisono::measure(unisono::schedule::Collective::barrier, "dissemination", 1 << 16, true);
    unisono::measure(unisono::schedule::Collective::reduce, "fnomial", 1 << 16, true);
  }
  return 0;
}
