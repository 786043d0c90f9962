// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose allgathers go by the NIC path, among other operations there and elsewhere. Each rank's
// block is one packet, and every failure is an error on all ranks.
#include <signal.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "nic/job/gather_blocks.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::gather_job_test {
namespace {

class NicGatherJob : public NicJob {};

TEST_F(NicGatherJob, BlocksOfAPacket) {
  start_daemons();
  constexpr int kCalls = 200;
  auto processes = start_job([](const NicRank& self) {
    for (int call = 0; call < kCalls; ++call) {
      const auto bytes = static_cast<std::size_t>(1 + call * 7 % 1400);
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, call, bytes));
    }
    ASSERT_NO_FATAL_FAILURE(check_allgather(self, kCalls, 1400));
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT), (kCalls + 2) * kHosts) << "and those of the trial";
  EXPECT_EQ(operations(), 1U) << "the trial's";
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

TEST_F(NicGatherJob, AmongOthersAndWithRanksThatComeLate) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int call = 0; call < 100; ++call) {
      if (call % 20 == self.rank) usleep(3000);
      std::vector<std::int64_t> sums(20'000, self.rank);
      unisono_request_t request = nullptr;
      ASSERT_TRUE(
          succeeded(unisono_allreduce_start(UNISONO_IN_PLACE, sums.data(), 20'000, UNISONO_INT64,
                                            UNISONO_SUM, self.world, &request)));
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, call, 8));
      std::int64_t sum = self.rank;
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      ASSERT_EQ(sum, 6);
      if (call % 3 == 0) {
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      }
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, call + 1000, 1000));
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      ASSERT_EQ(sums.back(), 6);
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT), (2 * 100 + 1) * kHosts);
}

// Also after nothing but an allgather, from which each needs all the others.
TEST_F(NicGatherJob, CommunicatorsComeAndGo) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int round = 0; round < 10; ++round) {
      unisono_comm_t twin = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_split(self.world, 0, -self.rank, &twin)));
      const NicRank there = {self.ranks - 1 - self.rank, self.ranks, twin, self.line};
      ASSERT_NO_FATAL_FAILURE(check_allgather(there, round, 100));
      ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT), (10 + 11) * kHosts) << "and a trial of each";
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

int allgather(const NicRank& self, std::int64_t count) {
  std::vector<std::int64_t> block(static_cast<std::size_t>(count));
  std::vector<std::int64_t> all(block.size() * static_cast<std::size_t>(self.ranks));
  return unisono_allgather(block.data(), all.data(), count, UNISONO_INT64, self.world);
}

TEST_F(NicGatherJob, ALostRankIsNamed) {
  start_daemons();
  for (const int victim : {3, 0}) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      SCOPED_TRACE(victim);
      auto processes = start_job([victim, signal](const NicRank& self) {
        ASSERT_TRUE(succeeded(allgather(self, 1)));
        lose(self, victim, signal);
        const std::int64_t began_ns = base::now_ns();
        EXPECT_TRUE(failed(
            allgather(self, 1), UNISONO_ERROR_RANK_LOST,
            {"rank " + std::to_string(victim) + " is lost", "allgather", "in the NIC path"}));
        unisono_comm_info_t info{};
        info.size = sizeof info;
        ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &info)));
        EXPECT_LT(info.sleeps, 20 * (base::now_ns() - began_ns) / base::kMillisecond)
            << "a rank that waits for another one keeps its core busy";
        unisono_finalize(self.world);
      });
      expect_all_clean_but(processes, victim);
    }
  }
}

TEST_F(NicGatherJob, ARankThatLeavesIsNamed) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(allgather(self, 1)));
    if (self.rank != 2) {
      EXPECT_TRUE(failed(allgather(self, 1), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    }
    unisono_finalize(self.world);
  });
  expect_all_clean(processes);
}

TEST_F(NicGatherJob, TheEndOfADaemonIsAnErrorForAll) {
  start_daemons();
  expect_told_of_daemon(2, [](const NicRank& self) { return allgather(self, 1); });
}

TEST_F(NicGatherJob, CallsThatDifferAreFound) {
  start_daemons();
  // Another length, of one packet and of another path; another collective; split-phase.
  expect_difference([](const NicRank& self) { return allgather(self, self.rank == 1 ? 2 : 1); });
  expect_difference([](const NicRank& self) { return allgather(self, self.rank == 3 ? 1000 : 1); });
  expect_difference([](const NicRank& self) {
    return self.rank == 0 ? unisono_barrier(self.world) : allgather(self, 1);
  });
  expect_difference([](const NicRank& self) {
    return self.rank == 2 ? allgather(self, 1) : unisono_barrier(self.world);
  });
}

}  // namespace
}  // namespace unisono::harness::gather_job_test
