// SPDX-License-Identifier: BSD-3-Clause
// Jobs with several ranks on a host, whose communicators have a NIC path. The host's sum is made in
// shared memory and sent there once. Results have the bits of the host engine's on the same two
// levels, wherever the ranks are. Failures are named as with one rank per host.
#include <signal.h>

#include <string>
#include <vector>

#include "base/prng.hpp"
#include "model/default_machine.hpp"
#include "nic/job/allreduce_bits.hpp"
#include "nic/job/gather_blocks.hpp"
#include "nic/job/nic_job.hpp"
#include "nic/port/vector_limit.hpp"
#include "select/nic/pays.hpp"

namespace unisono::harness::host_ranks_test {
namespace {

using Placement = std::vector<int>;  // host by rank

std::uint64_t host_count(const Placement& host_of) {
  return static_cast<std::uint64_t>(*std::ranges::max_element(host_of)) + 1;
}

class NicHostRanks : public NicJob {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    host_of_ = {0, 0, 1, 1, 2, 2};
  }
  void use(const Placement& host_of) { host_of_ = host_of; }
};

// To and from every rank, with the bits of the allreduce.
void check_roots(const NicRank& self) {
  constexpr std::int64_t kCount = 7;
  const auto input = numbers_of<double>(1, self.rank, kCount);
  std::vector<double> sum(kCount);
  ASSERT_TRUE(succeeded(unisono_allreduce(input.data(), sum.data(), kCount, UNISONO_FLOAT64,
                                          UNISONO_SUM, self.world)));
  const std::vector<double> untouched(kCount, 42);
  for (int root = 0; root < self.ranks; ++root) {
    auto at_root = untouched;
    ASSERT_TRUE(succeeded(unisono_reduce(input.data(), at_root.data(), kCount, UNISONO_FLOAT64,
                                         UNISONO_SUM, root, self.world)));
    ASSERT_EQ(at_root, self.rank == root ? sum : untouched);
    auto buffer = self.rank == root ? input : untouched;
    ASSERT_TRUE(
        succeeded(unisono_broadcast(buffer.data(), kCount, UNISONO_FLOAT64, root, self.world)));
    ASSERT_EQ(buffer, numbers_of<double>(1, root, kCount));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  }
}
// Among more than two hosts, the roots of broadcasts multicast their blocks themselves.
std::uint64_t operations_of_roots(const Placement& host_of) {
  return 1 + (host_count(host_of) == 2 ? 3 : 2) * host_of.size();
}

const std::vector<Placement>& placements() {
  static const std::vector<Placement> kAll = {
      {0, 0, 1, 1},
      {0, 0, 1, 1, 2, 2, 3, 3},
      {0, 1, 2, 3, 0, 1, 2, 3},
      {0, 1, 0, 2, 0, 1},
      {0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0},  // more on a host than its tree takes at once
      {0, 1, 1, 1, 2},                       // a leader that is alone
  };
  return kAll;
}

TEST_F(NicHostRanks, HaveTheBitsOfTheHostEngineOnTheSameLevels) {
  start_daemons();
  for (const Placement& host_of : placements()) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    use(host_of);
    const std::uint64_t before = operations();
    const auto by_nic = said_bits(start_job(say_bits));
    EXPECT_EQ(operations() - before, results_of_bits() + 1) << "and the trial";
    const auto by_host = said_bits(
        start_job(say_bits, {{"UNISONO_ALGORITHM", "allreduce:two-level(gather-release)"}}));
    EXPECT_EQ(operations() - before, results_of_bits() + 2) << "the trial alone";
    EXPECT_EQ(by_nic, by_host);
    EXPECT_EQ(by_nic, std::vector<std::string>(host_of.size(), by_host.front()));
  }
}

TEST_F(NicHostRanks, TheNetworkCarriesAContributionOfEachHost) {
  start_daemons();
  for (const Placement& host_of : placements()) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    use(host_of);
    const std::uint64_t results = operations();
    const std::uint64_t sums = counted(UNISONO_NIC_SENT_UP);
    auto processes = start_job([](const NicRank& self) {
      ASSERT_NO_FATAL_FAILURE(check_roots(self));
      leave(self);
    });
    expect_all_clean(processes);
    const std::uint64_t made = operations_of_roots(host_of) + 1;
    EXPECT_EQ(operations() - results, made);
    EXPECT_EQ(counted(UNISONO_NIC_SENT_UP) - sums, made * (host_count(host_of) - 1));
    for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
  }
}

// The blocks of all ranks together are one vector on the tree. Longer ones go by themselves
// (long_blocks_job_test.cpp).
std::size_t longest_block(const Placement& host_of) {
  const std::size_t gathered =
      select::nic_bytes_to_gather(model::default_machine(), static_cast<int>(host_count(host_of)));
  return gathered / host_of.size();
}

void gather_blocks(const NicRank& self, std::size_t longest) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{100}}) {
    for (int call = 0; call < 4; ++call) {
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, call, bytes));
    }
  }
  ASSERT_NO_FATAL_FAILURE(check_allgather(self, 1, longest));
}
constexpr std::uint64_t kGatheredInOnePacket = 12;

TEST_F(NicHostRanks, BlocksOfAllRanksGoByTheTree) {
  start_daemons();
  for (const Placement& host_of : placements()) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    use(host_of);
    const std::size_t longest = longest_block(host_of);
    const std::uint64_t results = operations();
    const std::uint64_t sums = counted(UNISONO_NIC_SENT_UP);
    const std::uint64_t blocks = counted(UNISONO_NIC_BLOCK_SENT);
    auto processes = start_job([longest](const NicRank& self) {
      ASSERT_NO_FATAL_FAILURE(gather_blocks(self, longest));
      leave(self);
    });
    expect_all_clean(processes);
    const std::size_t packets =
        (longest * host_of.size() + nic::kPacketBytes - 1) / nic::kPacketBytes;
    const std::uint64_t made = kGatheredInOnePacket + packets + 1;
    EXPECT_EQ(operations() - results, made) << "and the trial";
    EXPECT_EQ(counted(UNISONO_NIC_SENT_UP) - sums, made * (host_count(host_of) - 1));
    EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT) - blocks, host_count(host_of)) << "the trial's";
    for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
  }
}

// More than an allgather off the tree has bits for, and more on a host than the program can wake.
TEST_F(NicHostRanks, BlocksOfMoreThanSixtyFourRanks) {
  Placement host_of;
  for (int rank = 0; rank <= UNISONO_NIC_RANKS_MAX; ++rank) host_of.push_back(rank % kHosts);
  use(host_of);
  // One of so many may be silent for a second.
  environment_ = {{"UNISONO_DETECT_TIMEOUT", "300s"}, {"UNISONO_DETECT_TIMEOUT_HOSTS", "300s"}};
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int call = 0; call < 3; ++call) {
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, call, 8));
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), 3U + 1) << "and the trial";
}

// Each rank is late in its turn, and other collectives come in between.
TEST_F(NicHostRanks, BlocksAmongOthers) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int call = 0; call < 100; ++call) {
      if (call % 10 == self.rank) usleep(2000);
      ASSERT_NO_FATAL_FAILURE(check_allgather(self, call, static_cast<std::size_t>(1 + call * 9)));
      std::int64_t sum = self.rank;
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      ASSERT_EQ(sum, 15);
      if (call % 7 == 0) {
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      }
    }
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(NicHostRanks, BlocksThatDifferAreFound) {
  start_daemons();
  const auto gather = [](const NicRank& self, std::int64_t bytes) {
    std::vector<char> block(static_cast<std::size_t>(bytes));
    std::vector<char> all(block.size() * static_cast<std::size_t>(self.ranks));
    return unisono_allgather(block.data(), all.data(), bytes, UNISONO_BYTE, self.world);
  };
  // A rank of a host and a whole host; in other numbers of packets, and off the NIC path.
  expect_difference([&](const NicRank& self) { return gather(self, self.rank == 3 ? 9 : 8); });
  expect_difference([&](const NicRank& self) { return gather(self, self.rank / 2 == 1 ? 9 : 8); });
  expect_difference([&](const NicRank& self) { return gather(self, self.rank == 4 ? 300 : 8); });
  expect_difference([&](const NicRank& self) { return gather(self, self.rank < 2 ? 5000 : 8); });
  expect_difference([&](const NicRank& self) {
    return self.rank == 5 ? unisono_barrier(self.world) : gather(self, 8);
  });
}

TEST_F(NicHostRanks, EveryCollectiveIsRight) { expect_everything_right(); }

// Each rank is late in its turn; communicators of some ranks of some hosts; operations that start
// before and end after others.
TEST_F(NicHostRanks, WhoeverComesLast) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    unisono_comm_t part = nullptr;
    // Ranks 0 2 3 and 1 4 5: two and one on a host.
    const bool is_in_first = self.rank == 0 || self.rank == 2 || self.rank == 3;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, is_in_first ? 0 : 1, 0, &part)));
    for (int i = 0; i < 200; ++i) {
      const std::vector<std::int64_t> own(20'000, self.rank + i);
      std::vector<std::int64_t> sums(own.size());
      unisono_request_t request = nullptr;
      ASSERT_TRUE(succeeded(unisono_allreduce_start(own.data(), sums.data(), 20'000, UNISONO_INT64,
                                                    UNISONO_SUM, self.world, &request)));
      if (i % 30 == self.rank) usleep(3000);
      std::int64_t sum = self.rank;
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, part)));
      ASSERT_EQ(sum, is_in_first ? 5 : 10);
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      ASSERT_EQ(sum, 45);
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      ASSERT_EQ(sums.back(), 6 * i + 15);
    }
    ASSERT_TRUE(succeeded(unisono_comm_free(part)));
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_GE(operations(), 600U);
}

TEST_F(NicHostRanks, CommunicatorsComeAndGo) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int round = 0; round < 10; ++round) {
      unisono_comm_t twin = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_split(self.world, 0, -self.rank, &twin)));
      for (int i = 0; i < round; ++i) {
        std::int64_t sum = self.rank;
        ASSERT_TRUE(succeeded(
            unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, twin)));
        ASSERT_EQ(sum, 15);
      }
      ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), 45U + 10 + 1) << "of the twins, a trial of each, and one of the world";
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

// The victim ends, or hangs, while the others wait for it in the NIC path.
void expect_loss(const NicRank& self, int victim, int signal) {
  ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  lose(self, victim, signal);
  EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                     {"rank " + std::to_string(victim) + " is lost", "in the NIC path"}));
  EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST));
  unisono_comm_t rest = nullptr;
  ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
  std::int64_t sum = 1;
  EXPECT_TRUE(
      succeeded(unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, rest)));
  EXPECT_EQ(sum, self.ranks - 1);
  leave(self);
}

TEST_F(NicHostRanks, ALostRankIsNamed) {
  start_daemons();
  // The leader of a host, of the root's as well, and one that shares its memory.
  for (const int victim : {0, 1, 2, 5}) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      SCOPED_TRACE(victim);
      auto processes =
          start_job([victim, signal](const NicRank& self) { expect_loss(self, victim, signal); });
      expect_all_clean_but(processes, victim);
    }
  }
}

// Its last act was to take the result, which is there for the other ranks of its host as well.
TEST_F(NicHostRanks, ARankThatEndsWithTheResultIsNotMissedInThatCall) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 4) self.line.say("goes on");
    if (self.rank == 5) self.line.hear();  // until rank 4 is stopped in its sleep
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 5) raise(SIGKILL);
    if (self.rank == 4) self.line.say("complete");
    self.line.hear();  // until rank 4 is
    unisono_finalize(self.world);
  });
  ASSERT_EQ(processes[4].line().hear(), "goes on");
  const pid_t sleeper = stop_in_its_sleep(processes[4], 2);
  ASSERT_GT(sleeper, 0);
  processes[5].line().say("go");
  EXPECT_NE(processes[5].wait(), 0);
  kill(sleeper, SIGCONT);
  EXPECT_EQ(processes[4].line().hear(), "complete");
  for (const int rank : {0, 1, 2, 3, 4}) processes[static_cast<std::size_t>(rank)].line().say("go");
  expect_all_clean(processes, 5);
}

TEST_F(NicHostRanks, ARankThatLeavesIsNamed) {
  start_daemons();
  for (const int leaver : {2, 3}) {
    auto processes = start_job([leaver](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      if (self.rank != leaver) {
        EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                           {"rank " + std::to_string(leaver)}));
      }
      unisono_finalize(self.world);
    });
    expect_all_clean(processes);
  }
}

TEST_F(NicHostRanks, TheEndOfADaemonIsAnErrorForAll) {
  start_daemons();
  expect_told_of_daemon(1, [](const NicRank& self) { return unisono_barrier(self.world); });
}

TEST_F(NicHostRanks, CallsThatDifferAreFound) {
  start_daemons();
  std::vector<std::int64_t> values(1000, 1);
  const auto reduce = [&values](const NicRank& self, std::int64_t count, unisono_op_t op) {
    return unisono_allreduce(UNISONO_IN_PLACE, values.data(), count, UNISONO_INT64, op, self.world);
  };
  // One rank of a host, its leader, and a host: another length, operator, root.
  expect_difference(
      [&](const NicRank& self) { return reduce(self, self.rank == 3 ? 2 : 1, UNISONO_SUM); },
      {"the ranks' calls differ", "but rank "});
  expect_difference([&](const NicRank& self) {
    return reduce(self, 1, self.rank == 4 ? UNISONO_MAX : UNISONO_SUM);
  });
  expect_difference(
      [&](const NicRank& self) { return reduce(self, self.rank / 2 == 1 ? 2 : 1, UNISONO_SUM); });
  expect_difference([&values](const NicRank& self) {
    std::int64_t sum = 0;
    return error_so_far(self, unisono_reduce(values.data(), &sum, 1, UNISONO_INT64, UNISONO_SUM,
                                             self.rank == 1 ? 1 : 0, self.world));
  });
  // In other numbers of packets: a rank of a host, and a host.
  expect_difference(
      [&](const NicRank& self) { return reduce(self, self.rank == 3 ? 600 : 200, UNISONO_SUM); });
  expect_difference([&](const NicRank& self) {
    return reduce(self, self.rank / 2 == 2 ? 100 : 700, UNISONO_SUM);
  });
  // One in the NIC path, the other not: too long for it, or split-phase; a rank, and a host.
  expect_difference(
      [&](const NicRank& self) { return reduce(self, self.rank == 5 ? 1000 : 1, UNISONO_SUM); });
  expect_difference(
      [&](const NicRank& self) { return reduce(self, self.rank < 2 ? 1000 : 1, UNISONO_SUM); });
}

// One rank more on a host than the program can wake: it polls with short sleeps.
TEST_F(NicHostRanks, MoreRanksOfAHostThanCanBeWoken) {
  constexpr int kHere = UNISONO_NIC_WAITERS_MAX + 1;
  Placement host_of(kHere, 0);
  host_of.push_back(1);
  use(host_of);
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int i = 0; i < 5; ++i) {
      if (self.rank == kHere) usleep(50'000);  // long enough for the others to sleep
      std::int64_t sum = self.rank;
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      ASSERT_EQ(sum, kHere * (kHere + 1) / 2);
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), 5U + 1) << "and the trial";
}

TEST_F(NicHostRanks, ADeadlineHolds) {
  start_daemons();
  expect_deadline();
}

}  // namespace
}  // namespace unisono::harness::host_ranks_test
