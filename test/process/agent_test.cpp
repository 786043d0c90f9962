// SPDX-License-Identifier: BSD-3-Clause
// agent.hpp and agent_loan.hpp: a thread of each rank carries split-phase operations on while the
// application computes, and lets go of them when it looks.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/unattended.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::agent_test {
namespace {

ProcessJob::Options with_agents(const char* engine) {
  ProcessJob::Options options;
  options.environment = {{"UNISONO_AGENT", "on"}, {"UNISONO_ENGINE", engine}};
  return options;
}

class AgentOf : public testing::TestWithParam<const char*> {};

TEST_P(AgentOf, OperationsEndThoughNoRankCalls) {
  for (const int ranks : {2, 3}) {
    ProcessJob job(
        ranks, [](ProcessRank& self) { check_unattended(self); }, with_agents(GetParam()));
    job.expect_all_clean();
  }
}

// The application comes back at any moment, with another operation, a look or a wait.
TEST_P(AgentOf, LetsGoWheneverTheApplicationLooks) {
  ProcessJob job(
      3,
      [](ProcessRank& self) {
        std::uint32_t state = 17U + static_cast<std::uint32_t>(self.rank);
        const auto any = [&state](std::uint32_t below) {
          state = state * 1664525U + 1013904223U;
          return (state >> 8) % below;
        };
        for (int round = 0; round < 300; ++round) {
          const std::int64_t count = 1 + 377 * (round % 40);
          std::vector<std::int64_t> values(static_cast<std::size_t>(count), round);
          std::vector<std::int64_t> sums(values.size());
          unisono_request_t request = nullptr;
          ASSERT_TRUE(
              succeeded(unisono_allreduce_start(values.data(), sums.data(), count, UNISONO_INT64,
                                                UNISONO_SUM, self.world, &request)));
          if (any(3) == 0) usleep(any(400));
          int one = 1;
          int total = 0;
          ASSERT_TRUE(succeeded(
              unisono_allreduce(&one, &total, 1, UNISONO_INT32, UNISONO_SUM, self.world)));
          ASSERT_EQ(total, 3);
          int done = 0;
          for (std::uint32_t looks = any(5); looks > 0 && done == 0; --looks) {
            ASSERT_TRUE(succeeded(unisono_test(&request, &done)));
          }
          if (done == 0) {
            ASSERT_TRUE(succeeded(unisono_wait(&request)));
          }
          for (const std::int64_t sum : sums) ASSERT_EQ(sum, 3 * round);
        }
      },
      with_agents(GetParam()));
  job.expect_all_clean();
}

// A call on a communicator with an operation under way, which may well be refused.
struct Between {
  const char* name;
  int error;
  std::function<int(unisono_comm_t, unisono_request_t&, unisono_plan_t)> call;
};

const std::vector<Between> kBetween = {
    {"comm_info", UNISONO_OK,
     [](unisono_comm_t comm, unisono_request_t&, unisono_plan_t) {
       unisono_comm_info_t info{};
       info.size = sizeof info;
       return unisono_comm_info(comm, &info);
     }},
    {"test without a place for its result", UNISONO_ERROR_ARGUMENT,
     [](unisono_comm_t, unisono_request_t& request, unisono_plan_t) {
       return unisono_test(&request, nullptr);
     }},
    {"wait_any with a request that has ended", UNISONO_ERROR_STATE,
     [](unisono_comm_t, unisono_request_t& request, unisono_plan_t) {
       // The wrong one first: the call returns at the first request that it finds ended.
       unisono_request_t both[] = {reinterpret_cast<unisono_request_t>(&request), request};
       int index = 0;
       return unisono_wait_any(both, 2, &index);
     }},
    {"a plan", UNISONO_OK,
     [](unisono_comm_t comm, unisono_request_t&, unisono_plan_t) {
       unisono_plan_t other = nullptr;
       const int error = unisono_barrier_plan(comm, &other);
       return error == UNISONO_OK ? unisono_plan_free(other) : error;
     }},
    {"plan_test without a place for its result", UNISONO_ERROR_ARGUMENT,
     [](unisono_comm_t, unisono_request_t&, unisono_plan_t plan) {
       return unisono_plan_test(plan, nullptr);
     }},
    {"plan_wait of a plan that was not started", UNISONO_ERROR_STATE,
     [](unisono_comm_t, unisono_request_t&, unisono_plan_t plan) {
       return unisono_plan_wait(plan);
     }},
    {"a start without a place for its request", UNISONO_ERROR_ARGUMENT,
     [](unisono_comm_t comm, unisono_request_t&, unisono_plan_t) {
       return unisono_barrier_start(comm, nullptr);
     }},
    {"a call with a root that is none", UNISONO_ERROR_ARGUMENT,
     [](unisono_comm_t comm, unisono_request_t& request, unisono_plan_t) {
       return unisono_broadcast(&request, 1, UNISONO_BYTE, 99, comm);
     }},
    {"comm_dup without a place for its result", UNISONO_ERROR_ARGUMENT,
     [](unisono_comm_t comm, unisono_request_t&, unisono_plan_t) {
       return unisono_comm_dup(comm, nullptr);
     }},
};

// Started operations end without further calls, whatever the last call was.
TEST_P(AgentOf, GoesOnAfterAnyCall) {
  ProcessJob job(
      2,
      [](ProcessRank& self) {
        std::vector<std::int64_t> values(100'000, self.rank + 1), sums(values.size());
        for (const Between& between : kBetween) {
          SCOPED_TRACE(between.name);
          sums.back() = -1;
          unisono_comm_t comm = nullptr;
          unisono_plan_t plan = nullptr;
          unisono_request_t request = nullptr;
          ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &comm)));
          ASSERT_TRUE(succeeded(unisono_barrier_plan(comm, &plan)));
          ASSERT_TRUE(
              succeeded(unisono_allreduce_start(values.data(), sums.data(), std::ssize(values),
                                                UNISONO_INT64, UNISONO_SUM, comm, &request)));
          EXPECT_EQ(between.call(comm, request, plan), between.error) << unisono_last_error();
          EXPECT_TRUE(appears(sums.back(), 3)) << "rank " << self.rank;
          EXPECT_TRUE(succeeded(unisono_wait(&request)));
          EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
          EXPECT_TRUE(succeeded(unisono_comm_free(comm)));
        }
      },
      with_agents(GetParam()));
  job.expect_all_clean();
}

INSTANTIATE_TEST_SUITE_P(Engines, AgentOf, testing::Values("inline", "helping"),
                         [](const auto& suite) { return std::string(suite.param); });

// How many cores each thread of that name may use; a sanitizer has threads of its own.
std::vector<int> cores_of_threads(const std::string& name) {
  std::vector<int> counts;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string its_name;
    std::getline(std::ifstream(entry.path() / "comm"), its_name);
    if (its_name != name) continue;
    cpu_set_t set;
    CPU_ZERO(&set);
    const pid_t thread = std::stoi(entry.path().filename());
    EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
    counts.push_back(CPU_COUNT(&set));
  }
  return counts;
}

// Two ranks that a launcher has bound to one core.
TEST(AgentOfABoundRank, MayUseACoreThatNoRankIsBoundTo) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "there is one core only";
  cpu_set_t one;
  CPU_ZERO(&one);
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // for those that it forks
  ProcessJob job(
      2,
      [](ProcessRank& self) {
        cpu_set_t own;
        CPU_ZERO(&own);
        EXPECT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
        EXPECT_EQ(CPU_COUNT(&own), 1) << "the rank";
        EXPECT_EQ(cores_of_threads("unisono-agent"), std::vector<int>{2});
        check_unattended(self);
      },
      with_agents("helping"));
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  job.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness::agent_test
