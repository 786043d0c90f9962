// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a job order a sleep against the stores of others: by membarrier, or by fences
// where ranks share cores and sleep often.
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "harness/rank_threads.hpp"
#include "topology/cores.hpp"

namespace unisono::test::sleep_order_test {
namespace {

void expect_fences(int ranks, bool expected) {
  RankThreads job(std::vector<int>(static_cast<std::size_t>(ranks), 0));
  job.run([&](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    EXPECT_EQ(self.job->cores().are_oversubscribed(), expected);
    const auto* const header =
        reinterpret_cast<const job::JobHeader*>(self.memory->at(memory::kSegmentAlignment / 2));
    EXPECT_EQ(header->sleepers.needs_fence.load() != 0, expected) << "rank " << self.rank;
  });
}

TEST(SleepOrder, IsByFencesWhereRanksShareCores) {
  expect_fences(topology::count_cores(topology::usable_cores()) + 1, true);
}

TEST(SleepOrder, IsByMembarrierWhereEachRankHasACore) {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0) {
    GTEST_SKIP() << "this kernel has no membarrier for all processes";
  }
  expect_fences(1, false);
}

}  // namespace
}  // namespace unisono::test::sleep_order_test
