// SPDX-License-Identifier: BSD-3-Clause
// Schedules in used memory are those in new memory.
#include "schedule/spares.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"

namespace unisono::schedule::spares_test {
namespace {

Shape shape_of(Collective collective) {
  return {.collective = collective, .ranks = 6, .count = collective == Collective::barrier ? 0 : 5};
}

TEST(Spares, SchedulesInUsedMemoryAreThoseInNewMemory) {
  Spares spares;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const Shape shape = shape_of(row.collective);
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::is_legal(row, shape, parameters)) continue;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const Schedule in_new = row.build(shape, parameters, rank);
      const Spares::Use use(spares);
      Schedule in_used = row.build(shape, parameters, rank);
      EXPECT_EQ(in_used, in_new) << row.name;
      Spares::give_back(std::move(in_used));
    }
  }
}

TEST(Spares, AreTakenWhileTheyAreUsedOnly) {
  Spares spares;
  Schedule schedule;
  schedule.ops.reserve(1000);
  spares.keep(std::move(schedule));
  EXPECT_LT(Spares::take().ops.capacity(), 1000U);
  {
    const Spares::Use use(spares);
    Schedule taken = Spares::take();
    EXPECT_GE(taken.ops.capacity(), 1000U);
    EXPECT_LT(Spares::take().ops.capacity(), 1000U);
    taken.ops.emplace_back();
    Spares::give_back(std::move(taken));
    EXPECT_TRUE(Spares::take().ops.empty());
  }
  Schedule lost;
  Spares::give_back(std::move(lost));
  EXPECT_EQ(Spares::take().ops.capacity(), 0U);
}

TEST(Spares, LeaveOutTheOrderWhileItIsNotNeeded) {
  Spares spares;
  EXPECT_FALSE(Spares::leave_out_order());
  {
    const Spares::Use without(spares, Spares::Order::left_out);
    EXPECT_TRUE(Spares::leave_out_order());
    {
      const Spares::Use with(spares);
      EXPECT_FALSE(Spares::leave_out_order());
    }
    EXPECT_TRUE(Spares::leave_out_order());
  }
  EXPECT_FALSE(Spares::leave_out_order());
}

// Only predecessors differ.
TEST(Spares, SchedulesWithoutOrderHaveTheSameSteps) {
  Spares spares;
  std::size_t predecessors = 0;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const Shape shape = shape_of(row.collective);
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::is_legal(row, shape, parameters)) continue;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      Schedule whole = row.build(shape, parameters, rank);
      const Spares::Use use(spares, Spares::Order::left_out);
      Schedule without = row.build(shape, parameters, rank);
      predecessors += whole.after.size();
      EXPECT_TRUE(without.after.empty()) << row.name;
      for (Schedule* each : {&whole, &without}) {
        each->after.clear();
        for (Op& op : each->ops) op.first_after = op.after_count = 0;
      }
      EXPECT_EQ(without, whole) << row.name;
    }
  }
  EXPECT_GT(predecessors, 0U);
}

// Memory that is too short has to grow, at the cost of an allocation and a copy.
TEST(Spares, ALongOneIsTakenBeforeAShortOneThatCameLater) {
  Spares spares;
  for (const std::size_t length : {1000, 10}) {
    Schedule schedule;
    schedule.ops.reserve(length);
    spares.keep(std::move(schedule));
  }
  const Spares::Use use(spares);
  EXPECT_GE(Spares::take().ops.capacity(), 1000U);
  EXPECT_LT(Spares::take().ops.capacity(), 1000U);
}

TEST(Spares, KeepAllSchedulesOfASet) {
  Spares spares;
  for (const std::size_t number : {3, 1, 5}) {
    std::vector<Schedule> set(number);
    for (Schedule& each : set) {
      each.shape.ranks = 7;
      each.ops.resize(100);
    }
    spares.keep_all(set);
    EXPECT_TRUE(set.empty());
  }
  const Spares::Use use(spares);
  for (int i = 0; i < 9; ++i) {
    const Schedule taken = Spares::take();
    EXPECT_GE(taken.ops.capacity(), 100U) << i;
    EXPECT_TRUE(taken.ops.empty()) << i;
    EXPECT_EQ(taken.shape, Shape{}) << i;
  }
  EXPECT_EQ(Spares::take().ops.capacity(), 0U);
}

}  // namespace
}  // namespace unisono::schedule::spares_test
