// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose vectors go in pieces in the NIC path, each by a tree of its own. Results have the bits
// of the host engine's on the same trees, and failures are reported as for whole vectors.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "nic/job/allreduce_bits.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::split_job_test {
namespace {

constexpr std::int64_t kCount = 100;  // elements that make four pieces

class NicSplitJob : public NicJob {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    environment_ = {{"UNISONO_NIC_SPLITS", "2"}};
  }
};

int sum_in_pieces(const NicRank& self, std::int64_t count = kCount) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count), self.rank);
  const int error = unisono_allreduce(UNISONO_IN_PLACE, values.data(), count, UNISONO_INT64,
                                      UNISONO_SUM, self.world);
  const std::int64_t sum = self.ranks * (self.ranks - 1) / 2;
  if (error == UNISONO_OK) {
    EXPECT_EQ(values, std::vector<std::int64_t>(values.size(), sum));
  }
  return error;
}

TEST_F(NicSplitJob, HasTheBitsOfTheHostEngineOnTheSameTrees) {
  start_daemons();
  // A vector with fewer words than pieces goes whole.
  constexpr const char* kTwoLevels = "two-level(gather-release)@0-9; two-level(split-release)";
  struct Case {
    std::vector<int> host_of;
    int splits;
    std::uint64_t pieces;
    const char* algorithm;
  };
  for (const Case& made : {Case{{0, 1, 2, 3}, 0, 1, "gather-release"},
                           Case{{0, 1, 2, 3}, 1, 2, "gather-release@0-9; split-release(1)"},
                           Case{{0, 1, 2, 3}, 2, 4, "gather-release@0-25; split-release(2)"},
                           Case{{0, 1, 2}, 2, 2, "gather-release@0-9; split-release(2)"},
                           Case{{0, 1}, 2, 2, "gather-release@0-9; split-release(1)"},
                           Case{{0, 0, 1, 1, 2, 2}, 2, 2, kTwoLevels},
                           Case{{0, 1, 2, 3, 0, 1, 1}, 1, 2, kTwoLevels}}) {
    SCOPED_TRACE(made.algorithm + testing::PrintToString(made.host_of));
    host_of_ = made.host_of;
    environment_ = {{"UNISONO_NIC_SPLITS", std::to_string(made.splits)}};
    const std::uint64_t before = operations();
    const auto by_nic = said_bits(start_job(say_bits));
    EXPECT_EQ(operations() - before, results_of_bits(made.pieces) + made.pieces)
        << "and the trial's";
    const auto by_host = said_bits(
        start_job(say_bits, {{"UNISONO_ALGORITHM", std::string("allreduce:") + made.algorithm}}));
    EXPECT_EQ(by_nic, by_host);
    EXPECT_EQ(by_nic, std::vector<std::string>(host_of_.size(), by_host.front()));
  }
}

TEST_F(NicSplitJob, EveryCollectiveIsRight) { expect_everything_right(); }

// The missing contributions differ between the trees. It is no error if a rank sends nothing for
// longer than the detection of a network that drops packets takes.
TEST_F(NicSplitJob, ARankMayComeAsLateAsItLikes) {
  start_daemons();
  auto processes = start_job(
      [](const NicRank& self) {
        for (int late = 0; late < self.ranks; ++late) {
          if (self.rank == late) usleep(1'000'000);
          ASSERT_TRUE(succeeded(sum_in_pieces(self)));
          ASSERT_TRUE(succeeded(unisono_barrier(self.world))) << "by the first tree alone";
        }
        leave(self);
      },
      {{"UNISONO_DETECT_TIMEOUT", "300ms"}, {"UNISONO_DETECT_TIMEOUT_HOSTS", "300ms"}});
  expect_all_clean(processes);
  EXPECT_EQ(operations(), (4U + 1) * kHosts + 4) << "and the trial's";
  for (int host = 0; host < kHosts; ++host) {
    EXPECT_EQ(counted(host, UNISONO_NIC_NOT_WOKEN), 0U) << host;
  }
  EXPECT_GE(counted(UNISONO_NIC_WOKEN), 4U) << "of 12 long waits; some may just be looking around";
}

TEST_F(NicSplitJob, ALostRankIsNamed) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(sum_in_pieces(self)));
    lose(self, 2);
    EXPECT_TRUE(failed(sum_in_pieces(self), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    unisono_finalize(self.world);
  });
  expect_all_clean_but(processes, 2);
}

TEST_F(NicSplitJob, ADaemonThatEndsIsToldToAll) {
  start_daemons();
  expect_told_of_daemon(1, [](const NicRank& self) { return sum_in_pieces(self); });
}

TEST_F(NicSplitJob, CallsThatDifferAreFound) {
  start_daemons();
  expect_difference([](const NicRank& self) {
    return sum_in_pieces(self, self.rank == 1 ? kCount + 1 : kCount);
  });
  expect_difference([](const NicRank& self) {
    return sum_in_pieces(self, self.rank == 2 ? 7 * kCount : 2 * kCount);
  });
  expect_difference([](const NicRank& self) {
    return self.rank == 3 ? unisono_barrier(self.world) : sum_in_pieces(self);
  });
}

TEST_F(NicSplitJob, HostsThatShareProcessorsCutNothingUnlessTold) {
  start_daemons();
  environment_ = {};
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(sum_in_pieces(self)));
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), 2U) << "and the trial's";
}

}  // namespace
}  // namespace unisono::harness::split_job_test
