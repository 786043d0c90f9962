// SPDX-License-Identifier: BSD-3-Clause
// Ranks that take no result return from a reduce in the NIC path before it is done (decision 71).
// Its root gets the sum all the same, whatever they do meanwhile: call again, end the communicator,
// leave the job (src/comm/nic/nic_leave.hpp), or die. A failure of such an operation is an error of
// the next call.
#include <sched.h>
#include <signal.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "nic/job/allreduce_bits.hpp"
#include "nic/job/many_hosts.hpp"
#include "nic/job/nic_job.hpp"
#include "nic/port/vector_limit.hpp"

namespace unisono::harness::returning_job_test {
namespace {

constexpr auto kMost = static_cast<int>(nic::kInFlightMax);

// Rank 0 is the root of the tree, too.
class NicReturning : public NicJob {
 protected:
  // All ranks but 0 have returned from their call, which rank 0 has not made.
  static void await_all_but_root(const std::vector<HostProcess>& processes) {
    for (std::size_t rank = 1; rank < processes.size(); ++rank) {
      ASSERT_EQ(processes[rank].line().hear(), "returned") << rank;
    }
  }
  static void tell_all(const std::vector<HostProcess>& processes, int but = -1) {
    for (int rank = 0; std::cmp_less(rank, processes.size()); ++rank) {
      if (rank != but) processes[static_cast<std::size_t>(rank)].line().say("go");
    }
  }
};
class NicReturningTree : public NicManyHosts<10> {};

int reduce(const NicRank& self, unisono_comm_t comm, std::int64_t& sum, int root = 0,
           std::int64_t more = 0) {
  const std::int64_t own = self.rank + more;
  return unisono_reduce(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, root, comm);
}

std::int64_t sum_of(const NicRank& self, std::int64_t more = 0) {
  return std::int64_t{self.ranks} * (self.ranks - 1) / 2 + self.ranks * more;
}

// The root comes when it is told; the others say that they have returned.
void reduce_to_late_root(const NicRank& self, unisono_comm_t comm, std::int64_t more = 0) {
  if (self.rank == 0) self.line.hear();
  std::int64_t sum = -1;
  ASSERT_TRUE(succeeded(reduce(self, comm, sum, 0, more)));
  ASSERT_EQ(sum, self.rank == 0 ? sum_of(self, more) : -1);
  if (self.rank != 0) self.line.say("returned");
}

void return_and_leave(const NicRank& self) {
  ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  ASSERT_NO_FATAL_FAILURE(reduce_to_late_root(self, self.world));
  leave(self);
}

// They are in unisono_finalize when the root calls, or get there later.
TEST_F(NicReturning, RanksThatTakeNothingReturnBeforeTheRootCalls) {
  start_daemons();
  auto processes = start_job(return_and_leave);
  ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
  processes[0].line().say("go");
  expect_all_clean(processes);
  EXPECT_EQ(operations(), 3U) << "and the trial and the barrier";
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

TEST_F(NicReturning, AlsoWithSeveralRanksOnAHost) {
  host_of_ = {0, 0, 1, 1, 2, 2, 3};
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int i = 0; i < scaled(300); ++i) {
      const int root = i % self.ranks;
      std::int64_t sum = -1;
      ASSERT_TRUE(succeeded(reduce(self, self.world, sum, root, i)));
      ASSERT_EQ(sum, self.rank == root ? sum_of(self, i) : -1) << i;
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), static_cast<std::uint64_t>(scaled(300)) + 1);
}

// Inner nodes return when the contributions of those below them have passed.
TEST_F(NicReturningTree, InnerNodesReturnToo) {
  use(10, {});
  start_daemons();
  auto processes = start_job(return_and_leave);
  for (std::size_t rank = 1; rank < processes.size(); ++rank) {
    ASSERT_EQ(processes[rank].line().hear(), "returned") << rank;
  }
  EXPECT_FALSE(inner_nodes().empty());
  processes[0].line().say("go");
  expect_all_clean(processes);
}

TEST_F(NicReturning, ARankIsAheadByABoundedNumber) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    std::int64_t sum = 0;
    if (self.rank == 0) {
      self.line.hear();
      for (int i = 0; i <= kMost; ++i) {
        ASSERT_TRUE(succeeded(reduce(self, self.world, sum, 0, i)));
        ASSERT_EQ(sum, sum_of(self, i)) << i;
      }
      return leave(self);
    }
    for (int i = 0; i < kMost; ++i) {
      ASSERT_TRUE(succeeded(reduce(self, self.world, sum, 0, i)));
    }
    const std::int64_t own = self.rank + kMost;
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_reduce_start(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, 0, self.world, &request)));
    int done = 0;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(succeeded(unisono_test(&request, &done)));
    EXPECT_EQ(done, 0);
    self.line.say("returned");
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    leave(self);
  });
  ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
  EXPECT_EQ(counted(UNISONO_NIC_SENT_UP), std::uint64_t{(kMost + 2) * (kHosts - 1)})
      << "with the trial and the barrier";
  processes[0].line().say("go");
  expect_all_clean(processes);
}

// Calls of both paths in one order, each with a root at random, between ranks that are late in
// turns. Some operations are split-phase.
void mix_calls(const NicRank& self) {
  base::Prng together(7);
  base::Prng apart(static_cast<std::uint64_t>(self.rank) + 1);
  for (int i = 0; i < scaled(1500); ++i) {
    const std::uint64_t kind = together.below(9);
    const int root = static_cast<int>(together.below(static_cast<std::uint64_t>(self.ranks)));
    if (apart.below(8) == 0) {
      for (std::uint64_t turn = apart.below(300); turn-- > 0;) sched_yield();
    }
    std::int64_t sum = self.rank + i;
    const std::int64_t own = sum;
    std::vector<std::int64_t> all(static_cast<std::size_t>(self.ranks), own);
    std::vector<std::int64_t> blocks(all.size());
    const bool is_root = self.rank == root;
    if (kind < 4) {
      ASSERT_TRUE(succeeded(reduce(self, self.world, sum, root, i)));
      ASSERT_EQ(sum, is_root ? sum_of(self, i) : own) << i;
    } else if (kind == 4) {
      unisono_request_t request = nullptr;
      ASSERT_TRUE(succeeded(unisono_reduce_start(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, root,
                                                 self.world, &request)));
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      ASSERT_EQ(sum, is_root ? sum_of(self, i) : own) << i;
    } else if (kind == 5) {
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      ASSERT_EQ(sum, sum_of(self, i)) << i;
    } else if (kind == 6) {
      ASSERT_TRUE(succeeded(unisono_broadcast(&sum, 1, UNISONO_INT64, root, self.world)));
      ASSERT_EQ(sum, root + i) << i;
    } else if (kind == 7) {
      ASSERT_TRUE(
          succeeded(unisono_alltoall(all.data(), blocks.data(), 1, UNISONO_INT64, self.world)));
      for (int rank = 0; rank < self.ranks; ++rank) {
        ASSERT_EQ(blocks[static_cast<std::size_t>(rank)], rank + i) << i;
      }
    } else {
      ASSERT_TRUE(
          succeeded(unisono_gather(&own, blocks.data(), 1, UNISONO_INT64, root, self.world)));
      ASSERT_EQ(blocks.back(), is_root ? self.ranks - 1 + i : 0) << i;
    }
  }
  leave(self);
}

TEST_F(NicReturning, BothPathsKeepOneOrder) {
  start_daemons();
  auto processes = start_job(mix_calls);
  expect_all_clean(processes);
  EXPECT_GT(operations(), static_cast<std::uint64_t>(scaled(1500)) / 2);
}

TEST_F(NicReturningTree, BothPathsKeepOneOrder) {
  use(10, {});
  start_daemons();
  auto processes = start_job(mix_calls);
  expect_all_clean(processes);
}

// Sums of floating-point numbers, in one packet and several, with all roots. At the root the bits
// are those of the host engine's allreduce on the same tree.
std::uint64_t hash_of_sums(const NicRank& self, bool reduces) {
  Bits bits;
  for (int i = 0; i < 120; ++i) {
    const std::size_t count = std::array{1, 5, 175, 178, 350}[static_cast<std::size_t>(i % 5)];
    const int root = i % self.ranks;
    const auto given = numbers_of<double>(i, self.rank, count);
    std::vector<double> sums(count);
    const auto n = static_cast<std::int64_t>(count);
    EXPECT_TRUE(succeeded(reduces ? unisono_reduce(given.data(), sums.data(), n, UNISONO_FLOAT64,
                                                   UNISONO_SUM, root, self.world)
                                  : unisono_allreduce(given.data(), sums.data(), n, UNISONO_FLOAT64,
                                                      UNISONO_SUM, self.world)));
    if (self.rank == root) bits.add(sums);
  }
  return bits.hash;
}

TEST_F(NicReturning, SumsHaveTheBitsOfTheHostEngine) {
  start_daemons();
  const auto hashes = [this](bool reduces, const Environment& environment) {
    auto processes = start_job(
        [reduces](const NicRank& self) {
          self.line.say(std::to_string(hash_of_sums(self, reduces)));
          leave(self);
        },
        environment);
    std::vector<std::string> said;
    for (const HostProcess& rank : processes) said.push_back(rank.line().hear());
    expect_all_clean(processes);
    return said;
  };
  const auto by_nic = hashes(true, {});
  EXPECT_GT(operations(), 120U);
  EXPECT_EQ(by_nic, hashes(false, {{"UNISONO_NIC", "off"},
                                   {"UNISONO_ALGORITHM", "allreduce:gather-release"}}));
}

// Members end a communicator, or the job, while the root has not called.
TEST_F(NicReturning, ACommunicatorEndsWhenItsOperationsAreDone) {
  constexpr int kTimes = 3;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int i = 0; i < kTimes; ++i) {
      unisono_comm_t other = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
      ASSERT_NO_FATAL_FAILURE(reduce_to_late_root(self, other, i));
      ASSERT_TRUE(succeeded(unisono_comm_free(other)));
    }
    leave(self);
  });
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
    processes[0].line().say("go");
  }
  expect_all_clean(processes);
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

TEST_F(NicReturning, ARootThatEndsTheCommunicatorWithoutItsCallHoldsNobodyUp) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    std::int64_t sum = 0;
    if (self.rank != 0) {
      ASSERT_TRUE(succeeded(reduce(self, other, sum)));
    }
    ASSERT_TRUE(succeeded(unisono_comm_free(other)));
    ASSERT_TRUE(succeeded(reduce(self, self.world, sum)));
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(NicReturning, ADeadlineHoldsAtTheEndOfACommunicator) {
  environment_ = {{"UNISONO_TIMEOUT", "500ms"}};
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    std::int64_t sum = 0;
    if (self.rank == 0) {
      self.line.hear();
      const int error = reduce(self, other, sum);
      if (error == UNISONO_OK) {
        EXPECT_EQ(sum, sum_of(self)) << "all contributions were there before the failure was seen";
      } else {
        EXPECT_TRUE(failed(error, UNISONO_ERROR_TIMEOUT, {"UNISONO_TIMEOUT", "in the NIC path"}));
      }
    } else {
      ASSERT_TRUE(succeeded(reduce(self, other, sum)));
    }
    unisono_comm_free(other);
    if (self.rank != 0) self.line.say("returned");
    unisono_finalize(self.world);
  });
  ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
  processes[0].line().say("go");
  expect_all_clean(processes);
}

// It has given its part, so the root has the sum.
TEST_F(NicReturning, ARankThatDiesAfterItsCallIsNamedByTheNext) {
  constexpr int kVictim = 2;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    ASSERT_NO_FATAL_FAILURE(reduce_to_late_root(self, self.world));
    if (self.rank == 0) self.line.say("has the sum");
    self.line.hear();
    if (self.rank == kVictim) raise(SIGKILL);
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    unisono_comm_t rest = nullptr;
    ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
    leave(self);
  });
  ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
  processes[kVictim].line().say("go");
  processes[kVictim].wait();
  processes[0].line().say("go");
  ASSERT_EQ(processes[0].line().hear(), "has the sum");
  tell_all(processes, kVictim);
  expect_all_clean(processes, kVictim);
  spoil();
}

TEST_F(NicReturning, ARootThatDiesIsNamedByTheNextCallAndHoldsNobodyUpAtTheEnd) {
  for (const bool calls_again : {true, false}) {
    start_daemons();
    auto processes = start_job([calls_again](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      if (self.rank == 0) {
        self.line.hear();
        raise(SIGKILL);
      }
      std::int64_t sum = 0;
      ASSERT_TRUE(succeeded(reduce(self, self.world, sum)));
      self.line.say("returned");
      if (calls_again) {
        EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 0"}));
        unisono_comm_t rest = nullptr;
        ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
        std::int64_t ranks = 1;
        ASSERT_TRUE(succeeded(
            unisono_allreduce(UNISONO_IN_PLACE, &ranks, 1, UNISONO_INT64, UNISONO_SUM, rest)));
        EXPECT_EQ(ranks, self.ranks - 1);
      }
      unisono_finalize(self.world);
    });
    ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
    processes[0].line().say("go");
    expect_all_clean(processes, 0);
    spoil();
  }
}

// A daemon of a rank that has returned ends, and that of the root. The contributions to the first
// operation are there.
TEST_F(NicReturning, TheEndOfADaemonIsAnErrorOfALaterCall) {
  for (const int host : {1, 0}) {
    start_daemons();
    auto processes = start_job([](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      if (self.rank == 0) self.line.hear();
      constexpr int kMostCalls = 1'000'000;  // many times as many as fit until then
      int error = UNISONO_OK;
      for (int i = 0; i < kMostCalls && error == UNISONO_OK; ++i) {
        std::int64_t sum = 0;
        error = reduce(self, self.world, sum, 0, i);
        const bool has_sum = self.rank == 0 && error == UNISONO_OK;
        ASSERT_EQ(sum, has_sum ? sum_of(self, i) : 0);
        if (i == 0 && self.rank != 0) self.line.say("returned");
      }
      EXPECT_TRUE(failed(error, UNISONO_ERROR_SYSTEM, {"unisonod has ended", "NIC path"}));
      unisono_finalize(self.world);
    });
    ASSERT_NO_FATAL_FAILURE(await_all_but_root(processes));
    kill_daemon(host);
    processes[0].line().say("go");
    expect_all_clean(processes);
  }
}

// Rank 3 calls something else after two equal calls, and nothing else.
TEST_F(NicReturning, ACallThatDiffersIsAnErrorOfTheNextCall) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    std::int64_t sum = 0;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(succeeded(reduce(self, self.world, sum, 0, i)));
    const std::int64_t own = 1;
    const auto op = self.rank == 3 ? UNISONO_MAX : UNISONO_SUM;
    int error = unisono_reduce(&own, &sum, 1, UNISONO_INT64, op, 0, self.world);
    EXPECT_EQ(error == UNISONO_OK, self.rank != 0);
    if (error == UNISONO_OK) error = unisono_barrier(self.world);
    EXPECT_TRUE(failed(error, UNISONO_ERROR_MISMATCH, {"the ranks' calls differ"}));
    unisono_finalize(self.world);
  });
  expect_all_clean(processes);
}

}  // namespace
}  // namespace unisono::harness::returning_job_test
