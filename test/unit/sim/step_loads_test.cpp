// SPDX-License-Identifier: BSD-3-Clause
// Link loads of whole schedules: the strategies of the fat-tree paper, with and without holes.
#include "sim/step_loads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithm/algorithm.hpp"

namespace unisono::sim::step_loads_test {
namespace {

using topology::fat_tree::Ascent;
using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

std::vector<schedule::Message> messages_of(std::string_view name, int ranks, int k) {
  const auto* row = algorithm::find(schedule::Collective::allgather, name);
  const schedule::Shape shape{schedule::Collective::allgather, ranks, 0, 1};
  algorithm::Parameters parameters = algorithm::default_parameters(*row, shape);
  if (k > 0) parameters.values[0] = k;
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < ranks; ++rank) {
    set.push_back(*algorithm::build(*row, shape, parameters, rank));
  }
  return schedule::messages(set);
}

ScheduleLoads loads_of(std::string_view name, const std::vector<int>& holes, int k) {
  const Placement placement = *place_around(*Tree::make(4, 3), holes);
  return schedule_loads(messages_of(name, placement.ranks(), k), placement, Ascent::least_loaded,
                        1);
}

int congested(const ScheduleLoads& loads) {
  int steps = 0;
  for (const StepLoads& step : loads.steps) steps += step.congestion ? 1 : 0;
  return steps;
}

TEST(StepLoads, TheDirectStrategiesAreFreeOnAWholeTree) {
  for (const auto& [name, k] :
       {std::pair{"ring", 0}, {"prefix-send", 0}, {"kprefix", 8}, {"kshift", 8}}) {
    const ScheduleLoads loads = loads_of(name, {}, k);
    EXPECT_EQ(loads.steps.size(), 63U) << name;
    for (const StepLoads& step : loads.steps) {
      EXPECT_EQ(step.messages, 64) << name;
      EXPECT_EQ(*std::ranges::max_element(step.down), 1) << name << " step " << step.step;
    }
    // A shift within kShift's last round may be none of the free ones.
    const bool only_free_shifts = std::string_view(name) != "kshift";
    EXPECT_TRUE(congested(loads) == 0 || !only_free_shifts) << name;
  }
}

TEST(StepLoads, HolesBringContentionIntoFewerStepsOfKShiftThanOfPrefixSend) {
  const std::vector<int> holes{7, 20};
  const ScheduleLoads kshift = loads_of("kshift", holes, 8);
  const ScheduleLoads prefix = loads_of("prefix-send", holes, 0);
  EXPECT_GT(congested(kshift), 0);
  EXPECT_LT(congested(kshift) * static_cast<int>(prefix.steps.size()),
            congested(prefix) * static_cast<int>(kshift.steps.size()));
}

TEST(StepLoads, CountEveryMessageOnItsNodesLinks) {
  const Placement placement = *place_around(*Tree::make(4, 2), std::vector<int>{}, 6);
  const auto messages = messages_of("direct", 6, 0);
  const ScheduleLoads loads = schedule_loads(messages, placement, Ascent::by_source, 1);
  ASSERT_EQ(loads.steps.size(), 1U);
  EXPECT_EQ(loads.steps[0].messages, 30);
  EXPECT_EQ(loads.steps[0].up[0], 5);
  EXPECT_EQ(loads.steps[0].down[0], 5);
  EXPECT_EQ(loads.peak[static_cast<std::size_t>(placement.tree.up_link(0, 3))], 5);
  EXPECT_EQ(loads.peak[static_cast<std::size_t>(placement.tree.up_link(0, 6))], 0);
}

}  // namespace
}  // namespace unisono::sim::step_loads_test
