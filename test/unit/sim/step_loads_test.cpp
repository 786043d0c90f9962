// SPDX-License-Identifier: BSD-3-Clause
// Link loads of whole schedules: the strategies of the fat-tree paper, with and without holes; and
// of every row of the table, whose loads add up to its messages.
#include "sim/step_loads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
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

// ---- every row ---------------------------------------------------------------------------------

using Messages = std::span<const schedule::Message>;

std::vector<Messages> by_step(const std::vector<schedule::Message>& messages) {
  std::vector<Messages> steps;
  for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
    while (end < messages.size() && messages[end].step == messages[begin].step) ++end;
    steps.push_back(Messages(messages).subspan(begin, end - begin));
  }
  return steps;
}

// Messages of a step whose way goes beyond a level: so many cross its links up, and as many down.
int crossing(Messages step, const Placement& placement, int level) {
  int messages = 0;
  for (const schedule::Message& each : step) {
    const int source = placement.leaves[static_cast<std::size_t>(each.source)];
    const int target = placement.leaves[static_cast<std::size_t>(each.target)];
    messages += placement.tree.height(source, target) > level ? 1 : 0;
  }
  return messages;
}

void expect_conserved(Messages step, const Placement& placement, Ascent ascent) {
  const ScheduleLoads loads = schedule_loads(step, placement, ascent, 1);
  ASSERT_EQ(loads.steps.size(), 1U);
  EXPECT_EQ(loads.steps[0].messages, std::ssize(step));
  const Tree& tree = placement.tree;
  for (int level = 0; level < tree.levels(); ++level) {
    // The peak of a link over a single step is its load.
    int up = 0, down = 0, most_up = 0, most_down = 0;
    for (int place = 0; place < tree.nodes(); ++place) {
      const int load_up = loads.peak[static_cast<std::size_t>(tree.up_link(level, place))];
      const int load_down = loads.peak[static_cast<std::size_t>(tree.down_link(level, place))];
      up += load_up;
      down += load_down;
      most_up = std::max(most_up, load_up);
      most_down = std::max(most_down, load_down);
    }
    const int expected = crossing(step, placement, level);
    ASSERT_EQ(up, expected) << "level " << level;
    ASSERT_EQ(down, expected) << "level " << level;
    ASSERT_EQ(loads.steps[0].up[static_cast<std::size_t>(level)], most_up);
    ASSERT_EQ(loads.steps[0].down[static_cast<std::size_t>(level)], most_down);
  }
}

// The loads of a schedule are those of its steps. Where switches choose by addresses, the order of
// the messages does not count.
void expect_steps(const std::vector<schedule::Message>& messages, const Placement& placement,
                  Ascent ascent) {
  const ScheduleLoads whole = schedule_loads(messages, placement, ascent, 1);
  const std::vector<Messages> steps = by_step(messages);
  ASSERT_EQ(whole.steps.size(), steps.size());
  std::vector<int> peak(whole.peak.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_conserved(steps[i], placement, ascent));
    EXPECT_EQ(whole.steps[i].step, steps[i].front().step);
    EXPECT_EQ(whole.steps[i].messages, std::ssize(steps[i]));
    if (ascent == Ascent::least_loaded) continue;
    const ScheduleLoads one = schedule_loads(steps[i], placement, ascent, 1);
    EXPECT_EQ(whole.steps[i].up, one.steps[0].up);
    EXPECT_EQ(whole.steps[i].down, one.steps[0].down);
    std::ranges::transform(peak, one.peak, peak.begin(),
                           [](int a, int b) { return std::max(a, b); });
  }
  if (ascent != Ascent::least_loaded) {
    EXPECT_EQ(whole.peak, peak);
  }
}

TEST(StepLoads, OfEveryRowAddUpToItsMessages) {
  std::set<std::string> rows, loaded;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const std::string name =
        std::string(schedule::collective_name(row.collective)) + "/" + std::string(row.name);
    rows.insert(name);
    for (const int ranks : {16, 11}) {
      const bool barrier = row.collective == schedule::Collective::barrier;
      const schedule::Shape shape{row.collective, ranks, 0, barrier ? 0 : 12 * ranks};
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      std::vector<schedule::Schedule> set;
      for (int rank = 0; rank < ranks; ++rank) {
        set.push_back(*algorithm::build(row, shape, parameters, rank));
      }
      const std::vector<schedule::Message> messages = schedule::messages(set);
      const std::vector<int> holes = ranks == 16 ? std::vector<int>{} : std::vector{2, 7, 9};
      const Placement placement = *place_around(*Tree::make(4, 2), holes, ranks);
      for (const Ascent ascent : {Ascent::by_source, Ascent::by_target, Ascent::least_loaded}) {
        SCOPED_TRACE(name + ", " + std::to_string(ranks) + " ranks, " +
                     std::string(topology::fat_tree::ascent_name(ascent)));
        ASSERT_NO_FATAL_FAILURE(expect_steps(messages, placement, ascent));
      }
      loaded.insert(name);
    }
  }
  EXPECT_EQ(loaded, rows) << "each row runs on 16 ranks or on 11";
}

}  // namespace
}  // namespace unisono::sim::step_loads_test
