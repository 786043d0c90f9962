// SPDX-License-Identifier: BSD-3-Clause
// The machine file of a job is that of rank 0, on all hosts, whatever files the other ranks have.
// Without room for it, no rank starts (job/start/exchanges.hpp).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "harness/rank_threads.hpp"
#include "harness/temporary_folder.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"

namespace unisono::test::agree_on_machine_test {
namespace {

constexpr int kRanks = 5;

// Its name and one of its costs differ from all others'.
model::Machine machine_of(int rank) {
  model::Machine machine = model::default_machine();
  machine.name = "of rank " + std::to_string(rank);
  machine.paths.front().latency.number = 100 + rank / 3.0;
  return machine;
}

class MachineOfTheJob : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  // A file of each rank's own.
  std::vector<base::Environment> files() const {
    std::vector<base::Environment> own;
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string path = folder_.path() + "/" + std::to_string(rank) + ".json";
      EXPECT_TRUE(model::write_machine_file(machine_of(rank), path).ok());
      own.push_back({{"UNISONO_MACHINE", path}});
    }
    return own;
  }

  test::TemporaryFolder folder_;
};

TEST_P(MachineOfTheJob, IsThatOfRank0) {
  RankThreads job(GetParam(), {}, files());
  job.run([&job](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    EXPECT_EQ(self.job->machine(), machine_of(0)) << "rank " << self.rank;
  });
}

TEST_P(MachineOfTheJob, IsTheDefaultOneIfRank0HasNone) {
  std::vector<base::Environment> own = files();
  own.front() = {};
  RankThreads job(GetParam(), {}, own);
  job.run([&job](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    EXPECT_EQ(self.job->machine(), model::default_machine()) << "rank " << self.rank;
  });
}

TEST_P(MachineOfTheJob, WithoutRoomForItNoRankStartsAndEachSaysWhy) {
  RankThreads job(GetParam(), {}, files());
  std::atomic<int> refused{0};
  for (int rank = 0; rank < kRanks; ++rank) {
    // On one host rank 0 makes the room, on several the first rank of the last host cannot.
    const bool is_last_host = GetParam()[static_cast<std::size_t>(rank)] == GetParam().back();
    if (!is_last_host) continue;
    job.at(rank).memory->refuse_where(
        [](const char* purpose) { return std::string_view(purpose) == "the machine file"; });
  }
  job.run([&](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_FALSE(entered.ok());
    EXPECT_EQ(entered.error().code, base::Code::resources) << entered.error().message;
    EXPECT_NE(entered.error().message.find("the machine file"), std::string::npos)
        << entered.error().message;
    ++refused;
  });
  EXPECT_EQ(refused, kRanks);
}

INSTANTIATE_TEST_SUITE_P(Hosts, MachineOfTheJob,
                         testing::Values(std::vector{0, 0, 0, 0, 0}, std::vector{0, 1, 0, 1, 1},
                                         std::vector{0, 1, 2, 3, 4}),
                         [](const auto& suite) { return "Case" + std::to_string(suite.index); });

}  // namespace
}  // namespace unisono::test::agree_on_machine_test
