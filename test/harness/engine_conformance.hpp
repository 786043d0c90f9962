// SPDX-License-Identifier: BSD-3-Clause
// What every engine has to do, as the body of a rank: results, order, calls that differ, a death, a
// cancellation, each by blocking, split-phase and persistent calls. A test program starts the ranks
// so that their calls take its engine, and runs each of these (docs/howto/add-an-engine.md). All
// ranks of a job run the same one.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

struct EngineRank {
  int rank;
  int ranks;
  unisono_comm_t world;
  const char* engine;  // as unisono_comm_info names it
};

enum class CallKind : std::uint8_t { blocking, split_phase, persistent };
inline constexpr std::array kCallKinds = {CallKind::blocking, CallKind::split_phase,
                                          CallKind::persistent};
inline const char* call_kind_name(CallKind kind) {
  constexpr const char* kNames[] = {"Blocking", "SplitPhase", "Persistent"};
  return kNames[static_cast<int>(kind)];
}

// One sum over all ranks, in place; the first error of the calls that it takes.
inline int add_up(CallKind kind, std::vector<std::int64_t>& values, unisono_comm_t comm) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (kind == CallKind::blocking) {
    return unisono_allreduce(UNISONO_IN_PLACE, values.data(), count, UNISONO_INT64, UNISONO_SUM,
                             comm);
  }
  if (kind == CallKind::split_phase) {
    unisono_request_t request = nullptr;
    const int error = unisono_allreduce_start(UNISONO_IN_PLACE, values.data(), count, UNISONO_INT64,
                                              UNISONO_SUM, comm, &request);
    return error == UNISONO_OK ? unisono_wait(&request) : error;
  }
  unisono_plan_t plan = nullptr;
  int error = unisono_allreduce_plan(UNISONO_IN_PLACE, values.data(), count, UNISONO_INT64,
                                     UNISONO_SUM, comm, &plan);
  if (error != UNISONO_OK) return error;
  error = unisono_plan_start(plan);
  if (error == UNISONO_OK) error = unisono_plan_wait(plan);
  EXPECT_EQ(unisono_plan_free(plan), UNISONO_OK);
  return error;
}

// The engine of the last collective is the one that is tested.
inline void expect_engine(const EngineRank& self, unisono_comm_t comm) {
  unisono_comm_info_t info = {};
  info.size = sizeof info;
  ASSERT_TRUE(succeeded(unisono_comm_info(comm, &info)));
  ASSERT_STREQ(info.engine, self.engine);
}

// Right results by each kind of call, in any mixture of kinds between the ranks.
inline void check_kinds(const EngineRank& self) {
  const auto ranks = static_cast<std::int64_t>(self.ranks);
  for (int i = 0; i < 60; ++i) {
    const CallKind kind = kCallKinds[static_cast<std::size_t>(i < 30 ? i : i + self.rank) % 3];
    std::vector<std::int64_t> values(i % 2 == 0 ? 1 : 90, self.rank + i);
    ASSERT_TRUE(succeeded(add_up(kind, values, self.world))) << call_kind_name(kind) << ' ' << i;
    const std::int64_t sum = ranks * (ranks - 1) / 2 + ranks * i;
    ASSERT_EQ(values, std::vector<std::int64_t>(values.size(), sum)) << i;
    ASSERT_NO_FATAL_FAILURE(expect_engine(self, self.world)) << call_kind_name(kind);
  }
}

// Several operations at once: they start in one order, and end in any.
inline void check_order(const EngineRank& self) {
  constexpr std::size_t kAtOnce = 5;
  for (int round = 0; round < 20; ++round) {
    std::array<std::int64_t, kAtOnce> values{};
    std::array<unisono_request_t, kAtOnce> requests{};
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      values[i] = self.rank + static_cast<int>(i) + round;
      ASSERT_TRUE(succeeded(unisono_allreduce_start(UNISONO_IN_PLACE, &values[i], 1, UNISONO_INT64,
                                                    UNISONO_MAX, self.world, &requests[i])));
    }
    std::int64_t blocking = self.rank;
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, &blocking, 1, UNISONO_INT64, UNISONO_MAX, self.world)));
    ASSERT_EQ(blocking, self.ranks - 1);
    if (self.rank % 2 == 0) std::reverse(requests.begin(), requests.end());
    for (unisono_request_t& request : requests) ASSERT_TRUE(succeeded(unisono_wait(&request)));
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      ASSERT_EQ(values[i], self.ranks - 1 + static_cast<int>(i) + round);
    }
    ASSERT_NO_FATAL_FAILURE(expect_engine(self, self.world));
  }
}

// Rank 1 makes another call: all ranks get the error, and it stays that communicator's.
inline void check_mismatch(const EngineRank& self) {
  for (const CallKind kind : kCallKinds) {
    SCOPED_TRACE(call_kind_name(kind));
    unisono_comm_t twin = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin)));
    std::vector<std::int64_t> values(1, 1);
    ASSERT_TRUE(succeeded(add_up(kind, values, twin)));
    ASSERT_NO_FATAL_FAILURE(expect_engine(self, twin));
    std::vector<std::int64_t> odd(self.rank == 1 ? 3 : 2, 1);
    EXPECT_TRUE(failed(add_up(kind, odd, twin), UNISONO_ERROR_MISMATCH, {"differ"}));
    EXPECT_TRUE(failed(add_up(kind, odd, twin), UNISONO_ERROR_MISMATCH));
    values = {1};
    EXPECT_TRUE(succeeded(add_up(kind, values, self.world))) << "another communicator goes on";
    EXPECT_TRUE(succeeded(unisono_comm_free(twin)));
  }
}

// The victim ends while the others wait for it. They are told, and go on without it.
inline void check_death(const EngineRank& self, int victim, CallKind kind) {
  std::vector<std::int64_t> values(1, 1);
  ASSERT_TRUE(succeeded(add_up(kind, values, self.world)));
  ASSERT_NO_FATAL_FAILURE(expect_engine(self, self.world));
  if (self.rank == victim) {
    raise(SIGKILL);
    FAIL() << "goes on";
  }
  const std::string name = "rank " + std::to_string(victim);
  EXPECT_TRUE(failed(add_up(kind, values, self.world), UNISONO_ERROR_RANK_LOST, {name}));
  EXPECT_TRUE(failed(add_up(kind, values, self.world), UNISONO_ERROR_RANK_LOST));
  unisono_comm_t rest = nullptr;
  ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
  values = {1};
  EXPECT_TRUE(succeeded(add_up(kind, values, rest)));
  EXPECT_EQ(values.front(), self.ranks - 1);
}

// Rank 0 cancels. A rank that has all data may complete; the next call fails for all.
inline void check_cancel(const EngineRank& self) {
  unisono_comm_t twin = nullptr;
  ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin)));
  std::vector<std::int64_t> values(1, 1);
  ASSERT_TRUE(succeeded(add_up(CallKind::blocking, values, twin)));
  ASSERT_NO_FATAL_FAILURE(expect_engine(self, twin));
  if (self.rank == 0) {
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(unisono_barrier_start(twin, &request)));
    ASSERT_TRUE(succeeded(unisono_cancel(&request)));
  }
  // Before that, the operation cannot be complete: the others call it afterwards.
  ASSERT_TRUE(succeeded(add_up(CallKind::blocking, values, self.world)));
  if (self.rank != 0) {
    const int error = unisono_barrier(twin);
    EXPECT_TRUE(error == UNISONO_OK || error == UNISONO_ERROR_CANCELLED)
        << unisono_error_name(error) << ": " << unisono_last_error();
  }
  EXPECT_TRUE(failed(unisono_barrier(twin), UNISONO_ERROR_CANCELLED, {"rank 0"}));
  EXPECT_TRUE(succeeded(add_up(CallKind::blocking, values, self.world)));
  EXPECT_TRUE(succeeded(unisono_comm_free(twin)));
}

}  // namespace unisono::harness
