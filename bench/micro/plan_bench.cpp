// SPDX-License-Identifier: BSD-3-Clause
// Time from the first call of its kind to its plan, at one of P ranks that may help each other. The
// call is an allreduce of 64 elements of float32.
//
// plan/new_shape/P       no earlier call had its shape: algorithm, schedules of all ranks, programs
// plan/other_operator/P  one had, of the same type with another operator: programs are shared
// plan/by_rule/COLLECTIVE/P  no earlier call had its shape: a call of 4096 elements (each block of
//                        an allgather or alltoall), of which a rule says the algorithm
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "arith/type.hpp"
#include "base/check.hpp"
#include "model/default_machine.hpp"
#include "plan/plan_cache.hpp"

namespace unisono::plan {
namespace {

PlanContext context_of(int ranks) {
  PlanContext context;
  context.ranks = ranks;
  context.shared_receive_buffers = true;
  context.engine = base::EngineChoice::helping;
  context.receive_buffers[plan::SizeClass::small] = {
      .ranks = ranks, .lines = 256, .data_bytes = 1 << 16};
  context.receive_buffers[plan::SizeClass::bulk] = {
      .ranks = ranks, .lines = 256, .data_bytes = 1 << 20};
  return context;
}

Call allreduce(arith::Operator op) {
  return {.collective = schedule::Collective::allreduce,
          .count = 64,
          .type = static_cast<std::int32_t>(arith::Type::float32),
          .op = static_cast<std::int32_t>(op),
          .element_bytes = 4};
}

// Without it, no choice goes by price.
model::Machine without_price_error() {
  model::Machine machine = model::default_machine();
  machine.price_error.reset();
  return machine;
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

void run_by_rule(benchmark::State& state, schedule::Collective collective, int ranks) {
  PlanContext context = context_of(ranks);
  context.receive_buffers[plan::SizeClass::bulk].data_bytes = 4 << 20;
  const model::Machine machine = without_price_error();
  context.machine = &machine;
  PlanCache plans(context);
  Call call = allreduce(arith::Operator::max);
  call.collective = collective;
  call.count = 4096;
  if (!schedule::is_reduction(collective)) call.op = -1;
  for (auto _ : state) {
    state.PauseTiming();
    plans.override_with({});
    state.ResumeTiming();
    const auto found = plans.find(call, true);
    UNISONO_CHECK(found.ok(), "a call without a plan");
    benchmark::DoNotOptimize((*found)->parts.get());
  }
}

const bool kRegistered = [] {
  using schedule::Collective;
  for (const Collective collective :
       {Collective::allreduce, Collective::allgather, Collective::alltoall}) {
    for (const int ranks : {8, 64}) {
      const std::string name = std::string("plan/by_rule/") +
                               std::string(schedule::collective_name(collective)) + "/" +
                               std::to_string(ranks);
      benchmark::RegisterBenchmark(name.c_str(), run_by_rule, collective, ranks);
    }
  }
  return true;
}();

}  // namespace
}  // namespace unisono::plan
