// SPDX-License-Identifier: BSD-3-Clause
// Plans: a collective prepared once and started many times with the same buffers, several plans at
// once, mixed with blocking and started operations; and the refusals of plans.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "harness/elements.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::persistent_test {
namespace {

std::int64_t triangle(int ranks) { return std::int64_t{ranks} * (ranks - 1) / 2; }

TEST(Persistent, OneOfEachCollectiveStartedManyTimes) {
  run_threads(5, [](ThreadRank& self) {
    constexpr std::int64_t kCount = 20;
    const auto width = static_cast<std::size_t>(kCount);
    std::vector<std::int64_t> mine(width), root_only(width), everywhere(width), shared(width);
    std::vector<std::int64_t> all(width * 5);
    unisono_plan_t plans[5] = {};
    const unisono_comm_t world = self.world;
    ASSERT_TRUE(succeeded(unisono_barrier_plan(world, &plans[0])));
    ASSERT_TRUE(succeeded(
        unisono_broadcast_plan(shared.data(), kCount, UNISONO_INT64, 3, world, &plans[1])));
    ASSERT_TRUE(succeeded(unisono_reduce_plan(mine.data(), root_only.data(), kCount, UNISONO_INT64,
                                              UNISONO_SUM, 1, world, &plans[2])));
    ASSERT_TRUE(succeeded(unisono_allreduce_plan(mine.data(), everywhere.data(), kCount,
                                                 UNISONO_INT64, UNISONO_SUM, world, &plans[3])));
    ASSERT_TRUE(succeeded(
        unisono_allgather_plan(mine.data(), all.data(), kCount, UNISONO_INT64, world, &plans[4])));
    for (std::int64_t round = 0; round < scaled(200); ++round) {
      std::fill(mine.begin(), mine.end(), round + self.rank);
      std::fill(shared.begin(), shared.end(), self.rank == 3 ? round : -1);
      for (unisono_plan_t plan : plans) ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
      for (unisono_plan_t plan : plans) ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
      const std::int64_t sum = 5 * round + triangle(5);
      ASSERT_EQ(everywhere, std::vector<std::int64_t>(width, sum));
      ASSERT_EQ(root_only, std::vector<std::int64_t>(width, self.rank == 1 ? sum : 0));
      ASSERT_EQ(shared, std::vector<std::int64_t>(width, round));
      for (std::size_t rank = 0; rank < 5; ++rank) {
        ASSERT_EQ(all[rank * width], round + static_cast<std::int64_t>(rank));
      }
    }
    for (unisono_plan_t plan : plans) EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

TEST(Persistent, InPlaceAndLarge) {
  run_threads(3, [](ThreadRank& self) {
    std::vector<double> values(static_cast<std::size_t>(scaled(100003)));
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(
        succeeded(unisono_allreduce_plan(UNISONO_IN_PLACE, values.data(), std::ssize(values),
                                         UNISONO_FLOAT64, UNISONO_SUM, self.world, &plan)));
    for (int round = 0; round < 5; ++round) {
      std::fill(values.begin(), values.end(), self.rank + round);
      ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
      ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
      ASSERT_EQ(values, std::vector<double>(values.size(), 3.0 + 3.0 * round));
    }
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

TEST(Persistent, TestUntilDoneAndMixedWithOtherOperations) {
  run_threads(4, [](ThreadRank& self) {
    const std::int64_t mine = self.rank;
    std::int64_t planned = 0;
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_allreduce_plan(&mine, &planned, 1, UNISONO_INT64, UNISONO_SUM, self.world, &plan)));
    for (std::int64_t round = scaled(100); round > 0; --round) {
      planned = -1;
      std::int64_t started = -1;
      std::int64_t blocking = -1;
      unisono_request_t request = nullptr;
      ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
      ASSERT_TRUE(succeeded(unisono_allreduce_start(&mine, &started, 1, UNISONO_INT64, UNISONO_MAX,
                                                    self.world, &request)));
      ASSERT_TRUE(succeeded(
          unisono_allreduce(&mine, &blocking, 1, UNISONO_INT64, UNISONO_MIN, self.world)));
      int done = 0;
      while (done == 0) {
        ASSERT_TRUE(succeeded(unisono_plan_test(plan, &done)));
        std::this_thread::yield();
      }
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      ASSERT_EQ(planned, triangle(4));
      ASSERT_EQ(started, 3);
      ASSERT_EQ(blocking, 0);
    }
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

// A rank may plan at any time, in any order, and more than it starts: planning is local.
TEST(Persistent, PlanningIsLocal) {
  run_threads(3, [](ThreadRank& self) {
    std::vector<unisono_plan_t> unused(static_cast<std::size_t>(self.rank) * 3);
    for (unisono_plan_t& plan : unused) {
      ASSERT_TRUE(succeeded(unisono_barrier_plan(self.world, &plan)));
    }
    std::int32_t value = 1;
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(unisono_allreduce_plan(UNISONO_IN_PLACE, &value, 1, UNISONO_INT32,
                                                 UNISONO_SUM, self.world, &plan)));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    EXPECT_EQ(value, 3);
    // One rank makes the same call without a plan: ranks compare the calls, not how they were
    // prepared.
    if (self.rank == 1) {
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT32, UNISONO_SUM, self.world)));
    } else {
      ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
      ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    }
    EXPECT_EQ(value, 9);
    for (const unisono_plan_t one : unused) EXPECT_TRUE(succeeded(unisono_plan_free(one)));
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

TEST(Persistent, RefusesAnEndWhileActive) {
  run_threads(2, [](ThreadRank& self) {
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(unisono_barrier_plan(self.world, &plan)));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    EXPECT_TRUE(failed(unisono_plan_free(plan), UNISONO_ERROR_STATE, {"unisono_plan_free"}));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

TEST(Persistent, EndsWithItsCommunicatorOrItself) {
  run_threads(2, [](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    unisono_plan_t orphan = nullptr;
    unisono_plan_t freed = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    ASSERT_TRUE(succeeded(unisono_barrier_plan(other, &orphan)));
    ASSERT_TRUE(succeeded(unisono_barrier_plan(self.world, &freed)));
    ASSERT_TRUE(succeeded(unisono_comm_free(other)));
    EXPECT_TRUE(failed(unisono_plan_start(orphan), UNISONO_ERROR_STATE));
    EXPECT_TRUE(succeeded(unisono_plan_free(freed)));
    int done = 0;
    EXPECT_TRUE(failed(unisono_plan_start(freed), UNISONO_ERROR_STATE));
    EXPECT_TRUE(failed(unisono_plan_wait(freed), UNISONO_ERROR_STATE));
    EXPECT_TRUE(failed(unisono_plan_test(freed, &done), UNISONO_ERROR_STATE));
    EXPECT_TRUE(failed(unisono_plan_free(freed), UNISONO_ERROR_STATE));
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

// A refused plan affects no other rank: the communicator still works.
TEST(Persistent, ARefusedPlanIsLocal) {
  run_threads(3, [](ThreadRank& self) {
    std::int32_t value = 1;
    unisono_plan_t plan = nullptr;
    if (self.rank == 1) {
      EXPECT_TRUE(failed(unisono_broadcast_plan(&value, 1, UNISONO_INT32, 3, self.world, &plan),
                         UNISONO_ERROR_ARGUMENT, {"unisono_broadcast_plan", "root", "3"}));
      EXPECT_EQ(plan, nullptr);
      EXPECT_TRUE(failed(
          unisono_allreduce_plan(&value, &value, 1, UNISONO_INT32, UNISONO_SUM, self.world, &plan),
          UNISONO_ERROR_ARGUMENT, {"unisono_allreduce_plan"}));
    }
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

}  // namespace
}  // namespace unisono::harness::persistent_test
