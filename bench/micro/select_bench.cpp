// SPDX-License-Identifier: BSD-3-Clause
// Time of a choice by price, which the first call of a shape pays. The ranks are on one host, with
// a core each; 64 elements of float64.
//
// select/by_price/COLLECTIVE/P   builds and prices the candidates
// select/by_rule/COLLECTIVE/P    goes through the rules instead
// select/helped/COLLECTIVE/P     builds and prices the candidates of 16384 elements, for ranks that
//                                share two cores and help each other
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using schedule::Collective;

schedule::Shape shape_of(Collective collective, int ranks) {
  return {.collective = collective,
          .ranks = ranks,
          .count = collective == Collective::barrier ? 0 : 64};
}

Circumstances circumstances(int ranks) {
  return {.element_bytes = 8,
          .cores = ranks,
          .multicast = true,
          .staged_multicast = true,
          .receive_buffer_bytes = 128 << 10,
          .op = arith::Operator::sum,
          .type = arith::Type::float64,
          .shared_receive_buffers = true};
}

void by_price(benchmark::State& state, Collective collective, int ranks) {
  for (auto _ : state) {
    const auto choice = choose_by_price(shape_of(collective, ranks), circumstances(ranks));
    UNISONO_CHECK(choice.has_value(), "a call without a candidate");
    benchmark::DoNotOptimize(choice->algorithm);
  }
}

void helped(benchmark::State& state, Collective collective, int ranks) {
  schedule::Shape shape = shape_of(collective, ranks);
  shape.count = 16384;
  Circumstances now = circumstances(ranks);
  now.oversubscribed = true;
  now.cores = 2;
  now.receive_buffer_bytes = 1 << 20;
  for (auto _ : state) {
    const auto choice = choose_by_price(shape, now);
    UNISONO_CHECK(choice.has_value(), "a call without a candidate");
    benchmark::DoNotOptimize(choice->algorithm);
  }
}

void by_rule(benchmark::State& state, Collective collective, int ranks) {
  for (auto _ : state) {
    const Choice choice = choose_by_rule(shape_of(collective, ranks), circumstances(ranks));
    benchmark::DoNotOptimize(choice.algorithm);
  }
}

const bool kRegistered = [] {
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int ranks : {2, 8, 32, 64, 1024, 4096}) {
      const std::string name =
          std::string(schedule::collective_name(collective)) + "/" + std::to_string(ranks);
      benchmark::RegisterBenchmark(("select/by_price/" + name).c_str(), by_price, collective,
                                   ranks);
      if (ranks > 2 && ranks <= 64 && collective != Collective::barrier) {
        benchmark::RegisterBenchmark(("select/helped/" + name).c_str(), helped, collective, ranks);
      }
      benchmark::RegisterBenchmark(("select/by_rule/" + name).c_str(), by_rule, collective, ranks);
    }
  }
  return true;
}();

}  // namespace
}  // namespace unisono::select
