// SPDX-License-Identifier: BSD-3-Clause
// UNISONO_ALGORITHM in real jobs: its rules apply, the result stays right, ranks with different
// rules get an error, and a malformed text is an error of unisono_init.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::override_test {
namespace {

ProcessJob::Options with(const std::string& rules) {
  ProcessJob::Options options;
  options.environment["UNISONO_ALGORITHM"] = rules;
  return options;
}

std::string last_algorithm(unisono_comm_t comm) {
  unisono_comm_info_t info = {};
  info.size = sizeof info;
  EXPECT_TRUE(succeeded(unisono_comm_info(comm, &info)));
  return info.algorithm;
}

// The sum of `count` numbers on every rank, and the algorithm used.
std::string allreduce(unisono_comm_t comm, int ranks, std::size_t count) {
  const std::vector<std::int32_t> input(count, 3);
  std::vector<std::int32_t> output(count);
  EXPECT_TRUE(
      succeeded(unisono_allreduce(input.data(), output.data(), static_cast<std::int64_t>(count),
                                  UNISONO_INT32, UNISONO_SUM, comm)));
  EXPECT_EQ(output, std::vector<std::int32_t>(count, 3 * ranks));
  return last_algorithm(comm);
}

TEST(Override, IsObeyedByTheBytesOfTheCall) {
  ProcessJob job(
      5,
      [](const ProcessRank& self) {
        EXPECT_EQ(allreduce(self.world, self.ranks, 1), "reduce-broadcast(3)");
        EXPECT_EQ(allreduce(self.world, self.ranks, 1023), "reduce-broadcast(3)");
        EXPECT_EQ(allreduce(self.world, self.ranks, 1024), "reduce-scatter-allgather");
        EXPECT_EQ(allreduce(self.world, self.ranks, 300'000), "reduce-scatter-allgather");
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        EXPECT_EQ(last_algorithm(self.world), "pairwise");
      },
      with("allreduce: reduce-broadcast(3)@0-4K; reduce-scatter-allgather | barrier: pairwise"));
  job.expect_all_clean();
}

TEST(Override, HoldsInCommunicatorsThatAreMadeLater) {
  ProcessJob job(
      4,
      [](const ProcessRank& self) {
        unisono_comm_t half = nullptr;
        ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank % 2, 0, &half)));
        EXPECT_EQ(allreduce(half, 2, 10), "reduce-broadcast(2)");
        ASSERT_TRUE(succeeded(unisono_comm_free(half)));
      },
      with("allreduce:reduce-broadcast(3)"));
  job.expect_all_clean();
}

TEST(Override, AnAlgorithmCanBeExcluded) {
  std::string usual;
  for (const bool excluded : {false, true}) {
    ProcessJob job(
        3, [](const ProcessRank& self) { self.say(allreduce(self.world, self.ranks, 100'000)); },
        excluded ? with("allreduce:^" + usual) : ProcessJob::Options{});
    job.expect_all_clean();
    const auto& lines = job.wait(0).lines;
    ASSERT_EQ(lines.size(), 1U);
    const std::string name = lines[0].substr(0, lines[0].find('('));
    EXPECT_NE(name, usual);
    usual = name;
  }
}

TEST(Override, RanksThatDisagreeGetAMismatch) {
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      3,
      [](const ProcessRank& self) {
        setenv("UNISONO_ALGORITHM",
               self.rank == 1 ? "allreduce:ring" : "allreduce:reduce-scatter-allgather", 1);
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        ASSERT_TRUE(succeeded(unisono_barrier(world)));
        const std::vector<double> input(300, 1.0);
        std::vector<double> output(300);
        EXPECT_TRUE(failed(unisono_allreduce(input.data(), output.data(), 300, UNISONO_FLOAT64,
                                             UNISONO_SUM, world),
                           UNISONO_ERROR_MISMATCH,
                           {"rank 1", "another algorithm",
                            "UNISONO_ALGORITHM: rank 1 has allreduce:ring, all others have "
                            "allreduce:reduce-scatter-allgather"}));
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
      },
      options);
  job.expect_all_clean();
}

TEST(Override, WhatCannotBeReadIsAnErrorOfInit) {
  ProcessJob::Options options = with("allreduce:rinng@4K-inf");
  options.joins = false;
  ProcessJob job(
      2,
      [](const ProcessRank&) {
        unisono_comm_t world = nullptr;
        EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_ARGUMENT,
                           {"unisono_init: UNISONO_ALGORITHM=\"allreduce:rinng@4K-inf\"",
                            "at character 11", "no algorithm 'rinng'; choose one of: ring, "}));
        EXPECT_EQ(world, nullptr);
      },
      options);
  job.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness::override_test
