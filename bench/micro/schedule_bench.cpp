// SPDX-License-Identifier: BSD-3-Clause
// Time to build one rank's schedule at P = 64, for every row of the table.
// schedule/COLLECTIVE/NAME/mean is over all 64 ranks in turn. .../longest is the rank with the most
// ops, often the root, whose program grows with P. Both go through algorithm::build, legality
// checks included, as the first call of a shape does; freeing the schedule is part of it. `ops` is
// the mean length, `per_op` the time for one of them. The vector has 4096 elements; the cost of a
// schedule does not depend on it.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"

namespace unisono::algorithm {
namespace {

constexpr int kRanks = 64;

struct Case {
  const Algorithm* row;
  Shape shape;
  Parameters parameters;

  Schedule build_rank(int rank) const { return build(*row, shape, parameters, rank).value(); }
};

int longest_rank(const Case& what) {
  int longest = 0;
  std::size_t most = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::size_t ops = what.build_rank(rank).ops.size();
    if (ops > most) {
      most = ops;
      longest = rank;
    }
  }
  return longest;
}

void run_build(benchmark::State& state, const Case& what, const std::vector<int>& ranks) {
  std::size_t turn = 0;
  std::size_t ops = 0;
  for (auto _ : state) {
    const Schedule schedule = what.build_rank(ranks[turn]);
    if (++turn == ranks.size()) turn = 0;
    ops += schedule.ops.size();
    benchmark::DoNotOptimize(schedule.ops.data());
  }
  const auto total = static_cast<double>(ops);
  state.counters["ops"] = benchmark::Counter(total, benchmark::Counter::kAvgIterations);
  state.counters["per_op"] =
      benchmark::Counter(total, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

bool register_all() {
  std::vector<int> everyone;
  for (int rank = 0; rank < kRanks; ++rank) everyone.push_back(rank);
  for (const Algorithm& row : table()) {
    Case what{&row, {.collective = row.collective, .ranks = kRanks, .count = 4096}, {}};
    if (row.collective == Collective::barrier) what.shape.count = 0;
    what.parameters = default_parameters(row, what.shape);
    std::string name = "schedule/";
    name.append(schedule::collective_name(row.collective)).append("/").append(row.name);
    const auto add = [&](const char* which, const std::vector<int>& ranks) {
      benchmark::RegisterBenchmark((name + "/" + which).c_str(),
                                   [=](benchmark::State& state) { run_build(state, what, ranks); });
    };
    add("mean", everyone);
    add("longest", {longest_rank(what)});
  }
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace unisono::algorithm
