// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose allgathers have longer blocks than a packet, or several ranks on a host whose blocks
// are too long for the tree. They go by the NIC path in several packets. All of them arrive, in any
// order of arrival, and every failure is an error on all ranks.
#include <signal.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "harness/temporary_folder.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"
#include "nic/job/gather_blocks.hpp"
#include "nic/job/nic_job.hpp"
#include "nic/port/vector_limit.hpp"
#include "select/nic/pays.hpp"

namespace unisono::harness::long_blocks_job_test {
namespace {

using Placement = std::vector<int>;  // host by rank
using Sizes = std::vector<std::size_t>;

// For a machine on which the NIC path is the faster way for blocks of any length.
class NicLongBlocks : public NicJob {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    if (IsSkipped()) return;
    model::Machine machine = model::default_machine();
    machine.constants[static_cast<std::size_t>(model::Constant::nic_host_block)]->number = 50'000;
    const base::Status written = model::write_machine_file(machine, machine_file());
    ASSERT_TRUE(written.ok()) << written.error().message;
    environment_ = {{"UNISONO_MACHINE", machine_file()}};
  }

  // Packets with a host's block: one of each host for each piece of the longest one.
  static std::uint64_t packets_of(const Placement& host_of, const Sizes& sizes) {
    std::map<int, std::size_t> places;
    for (const int host : host_of) ++places[host];
    std::size_t most = 0;
    for (const auto& [host, ranks] : places) most = std::max(most, ranks);
    std::uint64_t packets = 0;
    for (const std::size_t bytes : sizes) {
      packets += (most * bytes + nic::kPacketBytes - 1) / nic::kPacketBytes * places.size();
    }
    return packets;
  }
  // Blocks of these sizes, none of which goes by the tree, are right and use these packets.
  void expect_right(const Placement& host_of, const Sizes& sizes) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    host_of_ = host_of;
    const std::uint64_t before = counted(UNISONO_NIC_BLOCK_SENT);
    const std::uint64_t results = operations();
    auto processes = start_job([&sizes](const NicRank& self) {
      int call = 0;
      for (const std::size_t bytes : sizes) {
        ASSERT_NO_FATAL_FAILURE(check_allgather(self, ++call, bytes)) << bytes;
      }
      leave(self);
    });
    expect_all_clean(processes);
    const std::uint64_t trial = packets_of(host_of, {1});
    EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT) - before, packets_of(host_of, sizes) + trial);
    EXPECT_EQ(operations() - results, 1U) << "the trial's";
    for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
  }

  std::string machine_file() const { return machine_folder_.path() + "/machine.json"; }

  const test::TemporaryFolder machine_folder_;
};

// One packet more, one byte more; in more packets than are in flight at once.
TEST_F(NicLongBlocks, OneRankOnAHost) {
  start_daemons();
  const Sizes sizes = {1400, 1401, 2800, 2801, 5600, 5601, 7003, 11'200, 11'201, 1, 50'000, 9000};
  expect_right({0, 1, 2, 3}, sizes);
  expect_right({0, 1, 2}, sizes);
  expect_right({0, 1}, sizes);
}

// A host's packets hold parts of several ranks' blocks, or a block has several packets. Hosts have
// equally many ranks or not, in any order.
TEST_F(NicLongBlocks, SeveralRanksOnAHost) {
  start_daemons();
  const Sizes sizes = {701, 1401, 1400, 2101, 2801, 3000, 5600, 5601, 16'384};
  expect_right({0, 0, 1, 1}, sizes);
  expect_right({0, 0, 1, 1, 2, 2, 3, 3}, sizes);
  expect_right({0, 1, 2, 3, 0, 1, 2, 3}, sizes);
  expect_right({0, 1, 0, 2, 0, 1}, sizes);
  expect_right({0, 1, 1, 1, 2}, sizes);
  expect_right({0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {701, 1401, 4000});
}

// Where it is measured to be the faster way, and no longer.
TEST_F(NicLongBlocks, AsTheDefaultMachineSays) {
  start_daemons();
  environment_ = {{"UNISONO_MACHINE", "default"}};
  for (const Placement& host_of : {Placement{0, 1, 2, 3}, Placement{0, 0, 1, 1, 2, 2, 3, 3}}) {
    host_of_ = host_of;
    const std::size_t longest =
        select::nic_bytes_of_host(model::default_machine()) / (host_of.size() / kHosts);
    const std::uint64_t before = counted(UNISONO_NIC_BLOCK_SENT);
    auto processes = start_job([longest](const NicRank& self) {
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, 1, longest));
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, 2, longest + 1)) << "by the host engine";
      leave(self);
    });
    expect_all_clean(processes);
    EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT) - before, packets_of(host_of, {longest, 1}));
  }
}

// Hosts forward the packets to one another.
TEST_F(NicLongBlocks, WithoutMulticast) {
  start_daemons();
  environment_.emplace_back("UNISONO_MULTICAST", "off");
  for (const Placement& host_of : {Placement{0, 1, 2, 3}, Placement{0, 0, 1, 1, 2, 2, 3, 3}}) {
    host_of_ = host_of;
    const std::uint64_t before = counted(UNISONO_NIC_BLOCK_TAKEN);
    auto processes = start_job([](const NicRank& self) {
      for (const std::size_t bytes : {1401, 9001, 20'000}) {
        ASSERT_NO_FATAL_FAILURE(check_allgather(self, static_cast<int>(bytes), bytes));
      }
      leave(self);
    });
    expect_all_clean(processes);
    const std::uint64_t others = kHosts - 1;
    EXPECT_EQ(counted(UNISONO_NIC_BLOCK_TAKEN) - before,
              (packets_of(host_of, {1401, 9001, 20'000}) + kHosts) * others)
        << "each packet once at each other host, and the trial's";
  }
}

// Each rank is late in its turn, so that others sleep for pieces. Short blocks, sums, barriers and
// calls of the host engine come in between, and start before and end after others.
void mix(const NicRank& self) {
  const std::int64_t total = self.ranks * (self.ranks - 1) / 2;
  for (int call = 0; call < 60; ++call) {
    if (call % 10 == self.rank) usleep(30'000);
    std::vector<std::int64_t> sums(20'000, self.rank);
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(unisono_allreduce_start(
        UNISONO_IN_PLACE, sums.data(), 20'000, UNISONO_INT64, UNISONO_SUM, self.world, &request)));
    ASSERT_NO_FATAL_FAILURE(
        check_allgather(self, call, static_cast<std::size_t>(1500 + 97 * call)));
    std::int64_t sum = self.rank;
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
    ASSERT_EQ(sum, total);
    if (call % 3 == 0) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    }
    ASSERT_NO_FATAL_FAILURE(check_allgather(self, call + 1000, 8));
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    ASSERT_EQ(sums.back(), total);
  }
  leave(self);
}

TEST_F(NicLongBlocks, AmongOthersAndWithRanksThatComeLate) {
  start_daemons();
  for (const Placement& host_of : {Placement{0, 1, 2, 3}, Placement{0, 0, 1, 1, 2, 2}}) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    host_of_ = host_of;
    auto processes = start_job(mix);
    expect_all_clean(processes);
  }
}

// Several at once: the ranks wait for them in one order, and test others meanwhile.
TEST_F(NicLongBlocks, SplitPhaseCallsAtOnce) {
  start_daemons();
  host_of_ = {0, 0, 1, 1, 2, 3};
  auto processes = start_job([](const NicRank& self) {
    constexpr int kCalls = 6;
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<std::uint8_t>> blocks, results, expected(kCalls);
      std::vector<unisono_request_t> requests(kCalls, nullptr);
      for (int call = 0; call < kCalls; ++call) {
        const std::size_t bytes = 1401 + static_cast<std::size_t>(call) * 1000;
        blocks.push_back(block_of(self.rank, round * kCalls + call, bytes));
        results.emplace_back(bytes * static_cast<std::size_t>(self.ranks));
        for (int rank = 0; rank < self.ranks; ++rank) {
          const auto block = block_of(rank, round * kCalls + call, bytes);
          auto& all = expected[static_cast<std::size_t>(call)];
          all.insert(all.end(), block.begin(), block.end());
        }
      }
      for (std::size_t call = 0; call < kCalls; ++call) {
        ASSERT_TRUE(
            succeeded(unisono_allgather_start(blocks[call].data(), results[call].data(),
                                              static_cast<std::int64_t>(blocks[call].size()),
                                              UNISONO_UINT8, self.world, &requests[call])));
      }
      for (std::size_t call = kCalls; call-- > 0;) {
        ASSERT_TRUE(succeeded(unisono_wait(&requests[call])));
        ASSERT_EQ(results[call], expected[call]) << call;
      }
    }
    leave(self);
  });
  expect_all_clean(processes);
}

int allgather(const NicRank& self, std::int64_t bytes) {
  std::vector<char> block(static_cast<std::size_t>(bytes));
  std::vector<char> all(block.size() * static_cast<std::size_t>(self.ranks));
  return unisono_allgather(block.data(), all.data(), bytes, UNISONO_BYTE, self.world);
}

// A leader, one that shares its memory, and one that is alone.
TEST_F(NicLongBlocks, ALostRankIsNamed) {
  start_daemons();
  host_of_ = {0, 0, 1, 1, 2};
  for (const int victim : {0, 1, 2, 4}) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      SCOPED_TRACE(victim);
      auto processes = start_job([victim, signal](const NicRank& self) {
        ASSERT_TRUE(succeeded(allgather(self, 10'000)));
        lose(self, victim, signal);
        EXPECT_TRUE(failed(
            allgather(self, 10'000), UNISONO_ERROR_RANK_LOST,
            {"rank " + std::to_string(victim) + " is lost", "allgather", "in the NIC path"}));
        unisono_comm_t rest = nullptr;
        ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
        EXPECT_TRUE(succeeded(unisono_barrier(rest)));
        leave(self);
      });
      expect_all_clean_but(processes, victim);
    }
  }
  for (int host = 0; host < kHosts; ++host) {  // the last victim was still stopped
    while (status(host).groups != 0) std::this_thread::yield();
  }
}

TEST_F(NicLongBlocks, ARankThatLeavesIsNamed) {
  start_daemons();
  host_of_ = {0, 0, 1, 1, 2};
  for (const int leaver : {2, 3}) {
    auto processes = start_job([leaver](const NicRank& self) {
      ASSERT_TRUE(succeeded(allgather(self, 10'000)));
      if (self.rank != leaver) {
        EXPECT_TRUE(failed(allgather(self, 10'000), UNISONO_ERROR_RANK_LOST,
                           {"rank " + std::to_string(leaver)}));
      }
      unisono_finalize(self.world);
    });
    expect_all_clean(processes);
  }
}

TEST_F(NicLongBlocks, TheEndOfADaemonIsAnErrorForAll) {
  start_daemons();
  host_of_ = {0, 0, 1, 1, 2, 2};
  expect_told_of_daemon(1, [](const NicRank& self) { return allgather(self, 10'000); });
}

TEST_F(NicLongBlocks, CallsThatDifferAreFound) {
  start_daemons();
  host_of_ = {0, 0, 1, 1, 2, 2};
  // A rank of a host differs, or a whole host. It does so in the last packet or the number of
  // packets, or goes by the tree or the host engine, or calls another collective.
  for (const std::int64_t other : {10'001, 20'000, 1000, 8, 100'000}) {
    SCOPED_TRACE(other);
    expect_difference(
        [&](const NicRank& self) { return allgather(self, self.rank == 3 ? other : 10'000); });
    expect_difference(
        [&](const NicRank& self) { return allgather(self, self.rank / 2 == 1 ? other : 10'000); });
  }
  expect_difference([&](const NicRank& self) {
    return self.rank == 5 ? unisono_barrier(self.world) : allgather(self, 10'000);
  });
}

}  // namespace
}  // namespace unisono::harness::long_blocks_job_test
