// SPDX-License-Identifier: BSD-3-Clause
// Jobs on a network that carries no multicast: in the NIC path results go down the tree they came
// up, as clones, and hosts forward blocks to one another.
#include <signal.h>

#include <string>
#include <vector>

#include "nic/job/allreduce_bits.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::clone_job_test {
namespace {

class NicCloneJob : public NicJob {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    environment_ = {{"UNISONO_MULTICAST", "off"}};
  }
};

TEST_F(NicCloneJob, HasTheBitsOfTheHostEngineOnTheSameTree) {
  start_daemons();
  struct Case {
    std::vector<int> host_of;
    const char* algorithm;
  };
  for (const Case& made : {Case{{0, 1, 2, 3}, "reduce-broadcast"}, Case{{0, 2}, "gather-release"},
                           Case{{0, 0, 1, 1, 2, 2}, "two-level(reduce-broadcast)"}}) {
    SCOPED_TRACE(testing::PrintToString(made.host_of));
    host_of_ = made.host_of;
    const std::uint64_t before = operations();
    const auto by_nic = said_bits(start_job(say_bits));
    EXPECT_EQ(operations() - before, results_of_bits() + 1) << "and the trial's";
    const auto by_host = said_bits(
        start_job(say_bits, {{"UNISONO_ALGORITHM", std::string("allreduce:") + made.algorithm}}));
    EXPECT_EQ(by_nic, by_host);
    EXPECT_EQ(by_nic, std::vector<std::string>(host_of_.size(), by_host.front()));
  }
}

TEST_F(NicCloneJob, EveryCollectiveIsRight) { expect_everything_right(); }

TEST_F(NicCloneJob, BlocksHop) {
  start_daemons();
  constexpr int kCalls = 20;
  auto processes = start_job([](const NicRank& self) {
    for (std::uint64_t call = 0; call < kCalls; ++call) {
      const std::vector<std::uint64_t> block(175, 1000 * call + static_cast<unsigned>(self.rank));
      std::vector<std::uint64_t> all(175U * kHosts);
      ASSERT_TRUE(
          succeeded(unisono_allgather(block.data(), all.data(), 175, UNISONO_UINT64, self.world)));
      for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], 1000 * call + i / 175) << i;
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT), 2 * (kCalls + 1) * kHosts)
      << "who has it, and who passes it on; and the trial's";
}

TEST_F(NicCloneJob, ALostRankIsNamed) {
  start_daemons();
  for (const int victim : {2, 0}) {
    SCOPED_TRACE(victim);
    auto processes = start_job([victim](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      lose(self, victim);
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                         {"rank " + std::to_string(victim)}));
      unisono_finalize(self.world);
    });
    expect_all_clean_but(processes, victim);
  }
}

TEST_F(NicCloneJob, CallsThatDifferAreFound) {
  start_daemons();
  expect_difference([](const NicRank& self) {
    std::int64_t value = 1;
    return self.rank == 3 ? unisono_barrier(self.world)
                          : unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT64,
                                              UNISONO_SUM, self.world);
  });
}

class NicPacketLength : public NicJob {};

TEST_F(NicPacketLength, AnInterfaceThatCarriesTooLittleIsNotUsed) {
  start_daemons();
  ASSERT_NO_FATAL_FAILURE(run_command(3, "ip link set eth0 mtu 1450"));
  const auto client = nic::ServiceClient::connect(path(3));
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(
      (*client)->describe().error().message,
      "unisonod: interface eth0 carries 1450 bytes (its MTU), and packets of the NIC path have "
      "up to 1500");
  auto processes = start_job([](const NicRank& self) {
    std::vector<std::int64_t> values(175, self.rank);
    ASSERT_TRUE(succeeded(unisono_allreduce(UNISONO_IN_PLACE, values.data(), 175, UNISONO_INT64,
                                            UNISONO_SUM, self.world)));
    EXPECT_EQ(values, std::vector<std::int64_t>(175, 6));
    leave(self);
  });
  expect_all_clean(processes);
  ASSERT_NO_FATAL_FAILURE(run_command(3, "ip link set eth0 mtu 1500"));
  EXPECT_EQ(operations(), 0U);
}

}  // namespace
}  // namespace unisono::harness::clone_job_test
