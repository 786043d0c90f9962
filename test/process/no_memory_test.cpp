// SPDX-License-Identifier: BSD-3-Clause
// The n-th allocation of a rank in unisono_init throws std::bad_alloc: either the job starts all
// the same, or all ranks get an error at once, while that rank lives on. The operator new of this
// program counts the allocations of one thread.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "harness/failing_new.hpp"
#include "harness/outcome.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::no_memory_test {
namespace {

ProcessJob::Options patient() {
  ProcessJob::Options options;
  options.joins = false;
  options.environment["UNISONO_START_TIMEOUT"] = "1h";
  return options;
}

// A start that lacks nothing needs so many.
long count_allocations(int victim) {
  ProcessJob job(
      3,
      [&](const ProcessRank& self) {
        const long before = allocations;
        unisono_comm_t world = nullptr;
        EXPECT_TRUE(succeeded(unisono_init(&world)));
        const long needed = allocations - before;
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
        self.say(std::to_string(needed));
      },
      patient());
  job.expect_all_clean();
  return std::stol(job.wait(victim).lines.front());
}

void throw_at(int victim, long number) {
  SCOPED_TRACE(fmt::format("allocation {} of rank {}", number, victim));
  ProcessJob job(
      3,
      [&](const ProcessRank& self) {
        unisono_comm_t world = nullptr;
        if (self.rank == victim) left_allocations = number;
        const int error = unisono_init(&world);
        left_allocations = -1;
        self.say(error == UNISONO_OK ? "started" : unisono_last_error());
        if (error == UNISONO_OK) {
          EXPECT_TRUE(succeeded(unisono_finalize(world)));
        } else if (self.rank == victim) {
          EXPECT_EQ(error, UNISONO_ERROR_RESOURCES) << unisono_last_error();
          pause();
        }
      },
      patient());
  job.await_line_of_all();
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    EXPECT_TRUE(job.wait(rank).clean()) << job.wait(rank).text();
  }
  job.signal(victim, SIGKILL);
  const std::string said = job.wait(victim).lines.front();
  for (int rank = 0; rank < 3; ++rank) {
    const std::string& line = job.wait(rank).lines.front();
    EXPECT_EQ(line == "started", said == "started") << line << "\n" << said;
  }
}

TEST(NoMemoryAtStart, AllRanksHearOfIt) {
  for (const int victim : {0, 2}) {
    const long needed = count_allocations(victim);
    ASSERT_GT(needed, 100);
    constexpr long kBeforeJob = 300;  // until a rank has joined, it needs fewer
    constexpr long kTries = 50;
    const long stride = std::max(1L, needed / kTries);
    for (long number = 0; number < needed && !testing::Test::HasFailure();) {
      throw_at(victim, number);
      number += number < kBeforeJob ? 1 : stride;
    }
    constexpr long kLast = 20;  // some of them come when all have confirmed the start
    for (long number = needed - kLast; number < needed && !testing::Test::HasFailure(); ++number) {
      throw_at(victim, number);
    }
  }
}

}  // namespace
}  // namespace unisono::harness::no_memory_test
