// SPDX-License-Identifier: BSD-3-Clause
// In which order ops become steps, for every algorithm.
#include "schedule/step_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "algorithm/algorithm.hpp"

namespace unisono::schedule::step_order_test {
namespace {

bool sends(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::multicast; }

Schedule build(std::string_view name, const Shape& shape, int rank) {
  const auto* row = algorithm::find(shape.collective, name);
  return *algorithm::build(*row, shape, algorithm::default_parameters(*row, shape), rank);
}

std::vector<OpId> as_it_stands(const Schedule& schedule) {
  std::vector<OpId> ops(schedule.ops.size());
  std::iota(ops.begin(), ops.end(), 0);
  return ops;
}

// All ops once, predecessors first; sends as they stood, each with no more before it than before.
void expect_legal(const Schedule& schedule, const StepOrder& order) {
  std::vector<OpId> sorted = order.ops;
  std::ranges::sort(sorted);
  ASSERT_EQ(sorted, as_it_stands(schedule));
  std::vector<std::size_t> place(order.ops.size());
  OpId last_send = -1;
  for (std::size_t i = 0; i < order.ops.size(); ++i) {
    const OpId op = order.ops[i];
    place[static_cast<std::size_t>(op)] = i;
    for (const OpId before : schedule.after_of(schedule.ops[static_cast<std::size_t>(op)])) {
      EXPECT_LT(place[static_cast<std::size_t>(before)], i);
    }
    if (!sends(schedule.ops[static_cast<std::size_t>(op)])) continue;
    EXPECT_GT(op, last_send);
    for (std::size_t j = 0; j < i; ++j) EXPECT_LT(order.ops[j], op);
    last_send = op;
  }
}

TEST(StepOrder, IsLegalAndNoSendComesLaterForEveryAlgorithm) {
  int moved = 0;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 5, 8}) {
      const Shape shape{row.collective, ranks, 0, row.collective == Collective::barrier ? 0 : 24,
                        false};
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(std::string(row.name) + " on " + std::to_string(ranks) + " ranks, rank " +
                     std::to_string(rank));
        const Schedule schedule = *algorithm::build(row, shape, parameters, rank);
        EXPECT_EQ(order_steps(schedule, false).ops, as_it_stands(schedule));
        const StepOrder order = order_steps(schedule, true);
        ASSERT_NO_FATAL_FAILURE(expect_legal(schedule, order));
        std::vector<char> needed;
        const Helpable helpable = helpable_steps(schedule, needed);
        EXPECT_EQ(helpable.any, order.helpable > 0);
        EXPECT_EQ(helpable.stages_input, order.stages_input);
        EXPECT_EQ(helpable.stages_output, order.stages_output);
        moved += order.ops == as_it_stands(schedule) ? 0 : 1;
      }
    }
  }
  EXPECT_GT(moved, 10);
}

// The blocks that a ring's rank passes on lie in slots. So a block of any length needs no staging.
TEST(StepOrder, WhatARankDoesForItselfComesLastAndNeedsNoStaging) {
  for (const char* name : {"ring", "concurrent-broadcast"}) {
    const Schedule schedule = build(name, {Collective::allgather, 5, 0, 8, false}, 2);
    const StepOrder order = order_steps(schedule, true);
    EXPECT_GT(order.helpable, 0U) << name;
    EXPECT_LT(order.helpable, order.ops.size()) << name;
    EXPECT_FALSE(order.stages_input) << name;
    EXPECT_FALSE(order.stages_output) << name;
    for (std::size_t i = order.helpable; i < order.ops.size(); ++i) {
      EXPECT_FALSE(sends(schedule.ops[static_cast<std::size_t>(order.ops[i])])) << name;
    }
  }
}

TEST(StepOrder, NothingIsHelpableWhereNoSendComesAfterAWait) {
  const StepOrder root =
      order_steps(build("serial", {Collective::reduce, 4, 0, 1, false}, 0), true);
  EXPECT_EQ(root.helpable, 0U);
  const StepOrder leaf =
      order_steps(build("gather-release", {Collective::allreduce, 4, 0, 1, false}, 3), true);
  EXPECT_EQ(leaf.helpable, 0U);
}

// The root of a gather-release combines in its output what it sends to all.
TEST(StepOrder, ASumThatIsSentOnIsStaged) {
  const StepOrder order =
      order_steps(build("gather-release", {Collective::allreduce, 4, 0, 1, false}, 0), true);
  EXPECT_GT(order.helpable, 0U);
  EXPECT_TRUE(order.stages_input);
  EXPECT_TRUE(order.stages_output);
}

}  // namespace
}  // namespace unisono::schedule::step_order_test
