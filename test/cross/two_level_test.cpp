// SPDX-License-Identifier: BSD-3-Clause
// Ranks of several hosts, which share memory in each: every algorithm to which hosts matter, with
// every inner one, roots, counts, in place, operators that do not commute, and vectors of several
// segments, against the naive reference; over datagrams that get lost, doubled and reordered, with
// multicast between the hosts and without.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "algorithm/algorithm.hpp"
#include "cross/trial.hpp"
#include "harness/host_maps.hpp"
#include "harness/scale.hpp"
#include "harness/unequal_blocks.hpp"

namespace unisono::test::two_level_test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using schedule::Collective;
using schedule::Shape;

std::unique_ptr<World> world_on(const std::vector<int>& hosts, bool multicast) {
  WorldOptions options;
  options.ranks = static_cast<int>(hosts.size());
  options.hosts = hosts;
  options.virtual_datagrams = true;
  options.network.seed = hosts.size();
  options.datagrams.seed = hosts.size();
  options.datagrams.loss = 0.02;
  options.datagrams.duplicates = 0.02;
  options.datagrams.reorder = true;
  options.datagrams.multicast = multicast;
  // At its end every rank waits so long for the others, which no longer make steps.
  options.settings = {{"UNISONO_DETECT_TIMEOUT", "10ms"},
                      {"UNISONO_DETECT_TIMEOUT_HOSTS", "10ms"},
                      {"UNISONO_CHANNELS", "4"}};
  return std::make_unique<World>(options);
}

// Whether the network carries multicast.
class TwoLevel : public testing::TestWithParam<bool> {
 protected:
  void check(const Shape& shape, const Material& of, bool in_place) {
    SCOPED_TRACE(algorithm_);
    ASSERT_NO_FATAL_FAILURE(Trial(shape, of, {.in_place = in_place}).run(*world_));
    ++cells_;
  }

  // The shape is that of the row, with its hosts; those of the calls come from the world.
  void check_root(const Algorithm& row, Shape shape) {
    for (const std::int64_t count : {0, 1, 7, 300}) {
      shape.count = count;
      check(shape, material(Type::float64, Operator::sum), false);
      check(shape, material(Type::int32, Operator::sum), true);
      if (row.collective == Collective::barrier) return;
    }
    if (row.unequal_blocks && schedule::has_blocks(row.collective)) {
      shape.count = 0;
      shape.blocks = unequal_blocks(row.collective, shape.ranks, 3);
      check(shape, material(Type::int16, Operator::sum), false);
    }
  }

  void check_row(const Algorithm& row, Shape shape, const algorithm::Parameters& parameters) {
    algorithm_ = algorithm::describe(row, parameters);
    world_->override_with(row, parameters);
    const int roots = schedule::is_rooted(row.collective) ? shape.ranks : 1;
    for (shape.root = 0; shape.root < roots; ++shape.root) check_root(row, shape);
    shape.root = roots - 1;
    shape.count = 5;
    shape.ordered = true;
    if (schedule::is_reduction(row.collective) &&
        algorithm::why_illegal(row, shape, parameters).empty()) {
      check(shape, affine_maps(), false);
      check(shape, affine_maps(), true);
    }
    shape.ordered = false;
    // More than the receive buffers hold at once: several segments.
    shape.count = 70'001;
    if (row.collective != Collective::barrier && parameters.values[0] == 0) {
      check(shape, material(Type::float64, Operator::sum), false);
    }
  }

  void check_on(const std::vector<int>& labels) {
    world_ = world_on(labels, GetParam());
    const auto hosts = topology::HostMap::of_labels(labels);
    for (const Algorithm& row : algorithm::table()) {
      if (!row.uses_hosts) continue;
      const Shape shape{.collective = row.collective, .ranks = world_->ranks(), .hosts = hosts};
      for (const algorithm::Parameters& parameters : choices_of(row, shape)) {
        check_row(row, shape, parameters);
        if (HasFatalFailure()) return;
      }
    }
  }

  // Every inner algorithm, and every leader of the root's host or scan within hosts.
  static std::vector<algorithm::Parameters> choices_of(const Algorithm& row, const Shape& shape) {
    std::vector<algorithm::Parameters> all;
    algorithm::Parameters parameters = algorithm::default_parameters(row, shape);
    if (row.parameters.empty()) return {parameters};
    const bool has_choice = row.parameters.size() > 1 && !row.parameters[1].names.empty();
    for (int inner = 0; inner <= row.parameters[0].high; ++inner) {
      parameters.values[0] = inner;
      for (int second = 0; second <= (has_choice ? row.parameters[1].high : 0); ++second) {
        if (has_choice) parameters.values[1] = second;
        all.push_back(parameters);
      }
    }
    return all;
  }

  std::unique_ptr<World> world_;
  std::string algorithm_;
  std::int64_t cells_ = 0;
};

TEST_P(TwoLevel, EveryInnerAlgorithmEqualsTheReference) {
  const std::vector<int> sizes =
      harness::kSanitized ? std::vector<int>{3, 4} : std::vector<int>{2, 3, 5, 6};
  for (const int ranks : sizes) {
    for (const std::vector<int>& labels : host_labels(ranks)) {
      check_on(labels);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%lld cells compared\n", static_cast<long long>(cells_));
  EXPECT_GT(cells_, 1000);
}

// By collective, what the rules take without multicast between hosts, and with it.
using Taken = std::map<Collective, std::pair<std::string, std::string>>;

// The choice of the rules, without a setting of the user.
class TwoLevelRules : public TwoLevel {
 protected:
  void expect_taken(const std::vector<int>& hosts, const Taken& taken) {
    world_ = world_on(hosts, GetParam());
    for (const auto& [collective, names] : taken) {
      Shape shape{.collective = collective, .ranks = world_->ranks()};
      if (collective != Collective::barrier) shape.count = 3;
      check(shape, material(Type::float64, Operator::sum), false);
      const auto* plan = world_->at(0).statistics().last_plan;
      ASSERT_NE(plan, nullptr);
      EXPECT_EQ(plan->algorithm, GetParam() ? names.second : names.first);
    }
  }
};

TEST_P(TwoLevelRules, AreTakenWhereHostsShareMemory) {
  expect_taken(
      {0, 0, 1, 1, 2},
      {{Collective::barrier, {"two-level(dissemination,5)", "two-level(gather-release,5)"}},
       {Collective::broadcast, {"two-level(fnomial,root)", "two-level(flat,first)"}},
       {Collective::reduce, {"two-level(serial,5)", "two-level(serial,5)"}},
       {Collective::allreduce, {"two-level(pairwise,5)", "two-level(gather-release,5)"}},
       {Collective::allgather, {"two-level(recursive-doubling)", "two-level(direct)"}},
       {Collective::scatter, {"two-level(linear)", "two-level(linear)"}},
       {Collective::gather, {"linear", "linear"}},
       {Collective::alltoall, {"multi-leader", "multi-leader"}},
       {Collective::reduce_scatter, {"two-level(pairwise,5)", "two-level(pairwise,5)"}}});
}

std::string network_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "multicast" : "unicast";
}
INSTANTIATE_TEST_SUITE_P(Hosts, TwoLevel, testing::Bool(), network_name);
INSTANTIATE_TEST_SUITE_P(Hosts, TwoLevelRules, testing::Bool(), network_name);

}  // namespace
}  // namespace unisono::test::two_level_test
