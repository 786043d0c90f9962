// SPDX-License-Identifier: BSD-3-Clause
// Time from the first call of its kind to its plan, at one of P ranks that may help each other. The
// call is an allreduce of 64 elements of float32.
//
// plan/new_shape/P       no earlier call had its shape: algorithm, schedules of all ranks, programs
// plan/other_operator/P  one had, of the same type with another operator: programs are shared
#include <benchmark/benchmark.h>

#include <cstdint>

#include "arith/type.hpp"
#include "base/check.hpp"
#include "plan/plan_cache.hpp"

namespace unisono::plan {
namespace {

PlanContext context_of(int ranks) {
  PlanContext context;
  context.ranks = ranks;
  context.shared_windows = true;
  context.engine = base::EngineChoice::helping;
  context.windows[plan::SizeClass::small] = {.ranks = ranks, .lines = 256, .data_bytes = 1 << 16};
  context.windows[plan::SizeClass::bulk] = {.ranks = ranks, .lines = 256, .data_bytes = 1 << 20};
  return context;
}

Call allreduce(arith::Operator op) {
  return {.collective = schedule::Collective::allreduce,
          .count = 64,
          .type = static_cast<std::int32_t>(arith::Type::float32),
          .op = static_cast<std::int32_t>(op),
          .element_bytes = 4};
}

void find(PlanCache& plans, arith::Operator op) {
  const auto found = plans.find(allreduce(op), true);
  UNISONO_CHECK(found.ok(), "a call without a plan");
  benchmark::DoNotOptimize((*found)->parts.get());
}

void run_new_shape(benchmark::State& state) {
  PlanCache plans(context_of(static_cast<int>(state.range(0))));
  for (auto _ : state) {
    state.PauseTiming();
    plans.override_with({});  // forgets all plans
    state.ResumeTiming();
    find(plans, arith::Operator::max);
  }
}
BENCHMARK(run_new_shape)->Name("plan/new_shape")->Arg(2)->Arg(8)->Arg(32);

void run_other_operator(benchmark::State& state) {
  PlanCache plans(context_of(static_cast<int>(state.range(0))));
  for (auto _ : state) {
    state.PauseTiming();
    plans.override_with({});
    find(plans, arith::Operator::sum);
    state.ResumeTiming();
    find(plans, arith::Operator::max);
  }
}
BENCHMARK(run_other_operator)->Name("plan/other_operator")->Arg(2)->Arg(8)->Arg(32);

}  // namespace
}  // namespace unisono::plan
