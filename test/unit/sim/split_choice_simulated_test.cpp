// SPDX-License-Identifier: BSD-3-Clause
// The choice of splits in the NIC path against the simulator: in all cells, what it chooses takes
// no longer than the whole vector. The simulator replays the schedules themselves; the choice has a
// formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "machines.hpp"
#include "model/default_machine.hpp"
#include "select/nic/split_choice.hpp"
#include "select/nic/tree_choice.hpp"
#include "sim/sweep.hpp"

namespace unisono::sim::split_choice_simulated_test {
namespace {

using select::NicCosts;
using select::SplitChoice;
using select::SplitWork;

// The last contribution of a host makes a doorbell packet for each tree.
model::Machine machine_of(int splits) {
  model::Machine machine = model::default_machine();
  for (model::PathParameters& path : machine.paths) {
    if (path.level != model::Level::nic) continue;
    for (model::StartUp& start : path.start_up) start.value.number *= 1 << splits;
  }
  return machine;
}

// The ops of each rank in the order in which messages can come, if all take as long. The NIC path
// takes packets as they come, and the simulator replays ops in their order. In the schedule's
// order, a rank that waits for the parts of one tree keeps its part of the next one.
std::vector<schedule::Schedule> as_they_come(std::vector<schedule::Schedule> set) {
  std::vector<std::vector<int>> steps, arrivals;
  for (const schedule::Schedule& each : set) {
    steps.emplace_back(each.ops.size(), 0);
    arrivals.emplace_back(each.slots.size(), 0);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rank = 0; rank < set.size(); ++rank) {
      for (std::size_t i = 0; i < set[rank].ops.size(); ++i) {
        const schedule::Op& op = set[rank].ops[i];
        int step = op.kind == schedule::OpKind::wait
                       ? arrivals[rank][static_cast<std::size_t>(op.slot)]
                       : 0;
        for (const schedule::OpId before : set[rank].after_of(op)) {
          step = std::max(step, steps[rank][static_cast<std::size_t>(before)]);
        }
        changed |= step != steps[rank][i];
        steps[rank][i] = step;
        for (const schedule::Target& target : set[rank].targets_of(op)) {
          arrivals[static_cast<std::size_t>(target.peer)][static_cast<std::size_t>(target.slot)] =
              step + 1;
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < set.size(); ++rank) {
    std::vector<std::size_t> order(set[rank].ops.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[rank][i]; });
    const std::vector<schedule::Op> before = set[rank].ops;
    for (std::size_t i = 0; i < order.size(); ++i) set[rank].ops[i] = before[order[i]];
  }
  return set;
}

double simulated_ns(int hosts, std::size_t words, bool adds_floats, int splits) {
  const select::NicTrees trees = select::nic_trees(hosts, splits, true);
  const schedule::Shape shape{.collective = schedule::Collective::allreduce,
                              .ranks = hosts,
                              .count = static_cast<std::int64_t>(words),
                              .hosts = topology::HostMap::apart(hosts)};
  const model::Work work{.engine = model::Engine::nic,
                         .type = adds_floats ? arith::Type::float64 : arith::Type::int64,
                         .op = arith::Operator::sum};
  // Schedules whose vector is not split have a row of their own.
  const auto* whole = algorithm::find(schedule::Collective::allreduce, "gather-release");
  const algorithm::Algorithm& row = splits == 0 ? *whole : *trees.algorithm;
  const algorithm::Parameters parameters =
      splits == 0 ? algorithm::Parameters{{select::nic_fan_in(hosts)}} : trees.parameters;
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < hosts; ++rank) {
    set.push_back(*algorithm::build(row, shape, parameters, rank));
  }
  set = as_they_come(std::move(set));
  const auto programs = ProgramSet::compile(
      hosts,
      [&](int rank) {
        return base::Result<schedule::Schedule>(set[static_cast<std::size_t>(rank)]);
      },
      machine_of(splits), work);
  EXPECT_TRUE(programs.ok());
  return to_ns(sweep(*programs).finish);
}

TEST(SplitChoice, NeverLosesInTheSimulation) {
  int splits_chosen = 0;
  for (const int hosts : {2, 3, 4, 5, 8, 9, 16, 31, 64, 512}) {
    const auto choice = SplitChoice::computed({.hosts = hosts,
                                               .processors = 1 << 20,
                                               .fan_in = select::nic_fan_in(hosts),
                                               .costs = NicCosts::of(model::default_machine())},
                                              SplitChoice::kMost);
    for (const bool adds_floats : {false, true}) {
      for (const std::size_t words : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 100U, 128U, 150U, 175U}) {
        const int chosen = choice.splits(words, adds_floats);
        std::vector<double> ns;
        for (int splits = 0; splits <= SplitChoice::kMost && 1 << splits <= hosts; ++splits) {
          if (words >> splits != 0) ns.push_back(simulated_ns(hosts, words, adds_floats, splits));
        }
        ASSERT_LT(static_cast<std::size_t>(chosen), ns.size());
        EXPECT_LE(ns[static_cast<std::size_t>(chosen)], ns.front())
            << hosts << " hosts, " << words << " words, floats " << adds_floats << ", " << chosen
            << " splits";
        splits_chosen += chosen > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(splits_chosen, 10);
}

}  // namespace
}  // namespace unisono::sim::split_choice_simulated_test
