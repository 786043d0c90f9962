// SPDX-License-Identifier: BSD-3-Clause
// Jobs with broadcasts whose root multicasts its block in the NIC path (decision 78): among other
// operations there and elsewhere, with several ranks on a host, with ranks that come late or leave.
// Every failure is an error on each rank that would wait.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "engine/nic/nic_broadcast.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::broadcast_job_test {
namespace {

using engine::NicBroadcast;

class NicBroadcastJob : public NicJob {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    environment_ = {{"UNISONO_NIC_ROOTED", "on"}};
  }
  static void tell(const std::vector<HostProcess>& processes, const std::vector<int>& ranks) {
    for (const int rank : ranks) processes[static_cast<std::size_t>(rank)].line().say("go");
  }
  static void hear(const std::vector<HostProcess>& processes, const std::vector<int>& ranks,
                   const std::string& what) {
    for (const int rank : ranks) {
      ASSERT_EQ(processes[static_cast<std::size_t>(rank)].line().hear(), what) << rank;
    }
  }
};

std::vector<std::uint8_t> bytes_of(int call, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  base::Prng random(static_cast<std::uint64_t>(call) + 1);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return bytes;
}

int broadcast(const NicRank& self, int root, std::int64_t count = 1) {
  std::vector<std::int64_t> buffer(static_cast<std::size_t>(count), self.rank == root ? 17 : -1);
  const int error = unisono_broadcast(buffer.data(), count, UNISONO_INT64, root, self.world);
  if (error == UNISONO_OK) {
    EXPECT_EQ(buffer.front(), 17);
    EXPECT_EQ(buffer.back(), 17);
  }
  return error;
}

void check_broadcast(const NicRank& self, int call, int root, std::size_t count) {
  const auto expected = bytes_of(call, count);
  auto buffer = self.rank == root ? expected : std::vector<std::uint8_t>(count);
  ASSERT_TRUE(succeeded(unisono_broadcast(buffer.data(), static_cast<std::int64_t>(count),
                                          UNISONO_UINT8, root, self.world)));
  ASSERT_EQ(buffer, expected) << call;
}

// Each is one packet of the root's host. For each so many, the trees carry an acknowledgement, and
// nobody waits for the last one.
TEST_F(NicBroadcastJob, BackToBackFromEveryRoot) {
  constexpr int kCalls = 500;
  start_daemons();
  for (const std::vector<int>& host_of :
       {std::vector{0, 1, 2, 3}, {0, 0, 1, 1, 2, 2, 3}, {0, 1, 2, 0, 1, 2, 0}, {0, 0, 1, 2}}) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    host_of_ = host_of;
    const std::uint64_t before = counted(UNISONO_NIC_BLOCK_SENT);
    const std::uint64_t results = operations();
    auto processes = start_job([](const NicRank& self) {
      base::Prng late(static_cast<std::uint64_t>(self.rank) + 1);
      for (int call = 0; call < kCalls; ++call) {
        for (std::uint64_t turn = late.below(8) == 0 ? late.below(100) : 0; turn-- > 0;) {
          sched_yield();
        }
        const auto count = static_cast<std::size_t>(1 + call * 7 % 1400);
        ASSERT_NO_FATAL_FAILURE(check_broadcast(self, call, call * 3 % self.ranks, count));
      }
      leave(self);
    });
    expect_all_clean(processes);
    const int hosts = *std::ranges::max_element(host_of) + 1;
    EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT) - before, kCalls + static_cast<std::uint64_t>(hosts))
        << "and those of the trial";
    const std::uint64_t acknowledged = kCalls / NicBroadcast::kInARow;
    EXPECT_LE(operations() - results, acknowledged + 1) << "and the trial's";
    EXPECT_GE(operations() - results, acknowledged);
    for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
  }
}

// The root is done when no other rank has called. The others do not wait for each other.
TEST_F(NicBroadcastJob, RanksWaitForTheRootOnly) {
  constexpr int kRoot = 1;
  start_daemons();
  for (const std::vector<int>& host_of : {std::vector{0, 1, 2, 3}, {0, 0, 1, 2}}) {
    host_of_ = host_of;
    auto processes = start_job([](const NicRank& self) {
      if (self.rank != kRoot) self.line.hear();
      for (std::uint64_t call = 0; call < NicBroadcast::kAhead; ++call) {
        ASSERT_NO_FATAL_FAILURE(check_broadcast(self, static_cast<int>(call), kRoot, 100));
      }
      self.line.say("done");
      leave(self);
    });
    for (const int rank : {kRoot, 3, 0, 2}) {
      if (rank != kRoot) tell(processes, {rank});
      hear(processes, {rank}, "done");
    }
    expect_all_clean(processes);
  }
}

// The root is in unisono_finalize, or has freed the communicator, when the others call.
TEST_F(NicBroadcastJob, ALateRankGetsTheBlockOfARootThatLeaves) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    for (unisono_comm_t comm : {other, self.world}) {
      if (self.rank == 0) self.line.say("calls");
      if (self.rank != 0) self.line.hear();
      ASSERT_NO_FATAL_FAILURE(check_broadcast({self.rank, self.ranks, comm, self.line}, 0, 0, 8));
      if (comm == other) {
        ASSERT_TRUE(succeeded(unisono_comm_free(comm)));
      }
    }
    leave(self);
  });
  for (int turn = 0; turn < 2; ++turn) {
    hear(processes, {0}, "calls");
    usleep(1'500'000);  // longer than a rank stays for others that ask
    tell(processes, {1, 2, 3});
  }
  expect_all_clean(processes);
}

// The others never make its call, and do not end the communicator.
TEST_F(NicBroadcastJob, ADeadlineHoldsAtTheEndOfARoot) {
  environment_.emplace_back("UNISONO_TIMEOUT", "2s");
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    if (self.rank == 0) {
      ASSERT_NO_FATAL_FAILURE(check_broadcast({self.rank, self.ranks, other, self.line}, 0, 0, 8));
    } else {
      self.line.hear();
    }
    ASSERT_TRUE(succeeded(unisono_comm_free(other)));
    if (self.rank == 0) self.line.say("returned");
    leave(self);
  });
  hear(processes, {0}, "returned");
  tell(processes, {1, 2, 3});
  expect_all_clean(processes);
}

// Operations of all kinds in one order, also split-phase and persistent, on ranks that are late in
// turns.
void mix_calls(const NicRank& self) {
  base::Prng together(11);
  base::Prng apart(static_cast<std::uint64_t>(self.rank) + 1);
  std::int64_t kept = 0;
  unisono_plan_t plan = nullptr;
  ASSERT_TRUE(succeeded(unisono_broadcast_plan(&kept, 1, UNISONO_INT64, 1, self.world, &plan)));
  for (int i = 0; i < scaled(1500); ++i) {
    const std::uint64_t kind = together.below(12);
    const int root = static_cast<int>(together.below(static_cast<std::uint64_t>(self.ranks)));
    if (apart.below(8) == 0) {
      for (std::uint64_t turn = apart.below(300); turn-- > 0;) sched_yield();
    }
    std::int64_t sum = self.rank;
    const std::int64_t all = std::int64_t{self.ranks} * (self.ranks - 1) / 2;
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(self.ranks));
    if (kind < 5) {
      ASSERT_NO_FATAL_FAILURE(check_broadcast(self, i, root, 1 + together.below(1400)));
    } else if (kind == 5) {
      constexpr int kAtOnce = 6;
      std::int64_t values[kAtOnce];
      unisono_request_t requests[kAtOnce] = {};
      for (int each = 0; each < kAtOnce; ++each) {
        const int from = (root + each) % self.ranks;
        values[each] = self.rank == from ? i + each : -1;
        ASSERT_TRUE(succeeded(unisono_broadcast_start(&values[each], 1, UNISONO_INT64, from,
                                                      self.world, &requests[each])));
      }
      for (int turn = 0; turn < kAtOnce; ++turn) {
        const int each = self.rank % 2 == 0 ? turn : kAtOnce - 1 - turn;
        ASSERT_TRUE(succeeded(unisono_wait(&requests[each])));
        ASSERT_EQ(values[each], i + each);
      }
    } else if (kind == 6) {
      kept = self.rank == 1 ? i : -1;
      ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
      ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
      ASSERT_EQ(kept, i);
    } else if (kind == 7) {
      ASSERT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      ASSERT_EQ(sum, all);
    } else if (kind == 8) {
      ASSERT_TRUE(succeeded(unisono_allgather(&sum, blocks.data(), 1, UNISONO_INT64, self.world)));
      ASSERT_EQ(blocks.back(), self.ranks - 1);
    } else if (kind == 9) {
      ASSERT_NO_FATAL_FAILURE(check_broadcast(self, i, root, 5000));  // the host engine's
    } else if (kind == 10) {
      ASSERT_TRUE(
          succeeded(unisono_gather(&sum, blocks.data(), 1, UNISONO_INT64, root, self.world)));
      ASSERT_EQ(blocks.back(), self.rank == root ? self.ranks - 1 : 0);
    } else {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    }
  }
  ASSERT_TRUE(succeeded(unisono_plan_free(plan)));
  leave(self);
}

TEST_F(NicBroadcastJob, AmongOthersInOneOrder) {
  start_daemons();
  for (const std::vector<int>& host_of :
       {std::vector{0, 1, 2, 3}, {0, 0, 1, 1, 2, 2, 3}, {0, 3, 1, 2, 3, 1}}) {
    SCOPED_TRACE(testing::PrintToString(host_of));
    host_of_ = host_of;
    auto processes = start_job(mix_calls);
    expect_all_clean(processes);
    EXPECT_GT(counted(UNISONO_NIC_BLOCK_SENT), 100U);
  }
}

// Calls of rank 1, of the root, or of a rank beside the root differ. Ranks that need not wait for
// the difference hear of it at the next call.
TEST_F(NicBroadcastJob, CallsThatDifferAreFound) {
  start_daemons();
  for (const std::vector<int>& host_of : {std::vector{0, 1, 2, 3}, {0, 0, 1, 2}}) {
    host_of_ = host_of;
    for (const int odd : {0, 1, 3}) {
      SCOPED_TRACE(odd);
      const auto differ = [&](const Call& call, const Call& other) {
        expect_difference([&](const NicRank& self) {
          return error_so_far(self, self.rank == odd ? other(self) : call(self));
        });
      };
      const Call call = [](const NicRank& self) { return broadcast(self, 0); };
      differ(call, [](const NicRank& self) { return broadcast(self, 0, 2); });
      differ(call, [](const NicRank& self) { return broadcast(self, 0, 1000); });
      differ(call, [](const NicRank& self) { return broadcast(self, 2); });
      differ(call, [odd](const NicRank& self) { return broadcast(self, odd == 0 ? 3 : odd); });
      differ(call, [](const NicRank& self) {
        double number = 0;
        return unisono_broadcast(&number, 1, UNISONO_FLOAT64, 0, self.world);
      });
      differ(call, [](const NicRank& self) { return unisono_barrier(self.world); });
      differ(call, [](const NicRank& self) {
        std::int64_t own = 0;
        std::vector<std::int64_t> all(static_cast<std::size_t>(self.ranks));
        return unisono_allgather(&own, all.data(), 1, UNISONO_INT64, self.world);
      });
    }
  }
}

// The root's call succeeds; so does that of a rank that has the block already.
TEST_F(NicBroadcastJob, ALostRankIsNamed) {
  start_daemons();
  for (const auto& [victim, root] : {std::pair(3, 3), {0, 0}, {2, 1}, {0, 1}}) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      SCOPED_TRACE(std::to_string(victim) + " of root " + std::to_string(root));
      auto processes = start_job([victim, root, signal](const NicRank& self) {
        ASSERT_TRUE(succeeded(broadcast(self, root)));
        lose(self, victim, signal);
        EXPECT_TRUE(failed(error_so_far(self, broadcast(self, root)), UNISONO_ERROR_RANK_LOST,
                           {"rank " + std::to_string(victim) + " is lost", "in the NIC path"}));
        unisono_comm_t rest = nullptr;
        ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
        const NicRank there = {self.rank - (self.rank > victim ? 1 : 0), self.ranks - 1, rest,
                               self.line};
        for (int call = 0; call < 40; ++call) {
          ASSERT_NO_FATAL_FAILURE(check_broadcast(there, call, call % there.ranks, 100));
        }
        unisono_finalize(self.world);
      });
      expect_all_clean_but(processes, victim);
    }
  }
}

// Many broadcasts of one root, until one fails.
int broadcast_many(const NicRank& self, int root) {
  int error = UNISONO_OK;
  for (std::uint64_t call = 0; error == UNISONO_OK && call < 3 * NicBroadcast::kSlots; ++call) {
    error = broadcast(self, root);
  }
  return error;
}

// The root goes on until it waits for an acknowledgement, and all others wait for the root. Some
// are next to the lost rank in the tree, and some are not.
TEST_F(NicBroadcastJob, ARootThatIsAheadHearsOfALostRank) {
  start_daemons();
  for (const auto& [victim, root] : {std::pair(3, 0), {3, 1}, {0, 2}}) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      SCOPED_TRACE(std::to_string(victim) + " of root " + std::to_string(root));
      auto processes = start_job([victim, root, signal](const NicRank& self) {
        ASSERT_TRUE(succeeded(broadcast(self, root)));
        lose(self, victim, signal);
        EXPECT_TRUE(failed(broadcast_many(self, root), UNISONO_ERROR_RANK_LOST,
                           {"rank " + std::to_string(victim) + " is lost", "in the NIC path"}));
        unisono_finalize(self.world);
      });
      expect_all_clean_but(processes, victim);
    }
  }
}

// One rank calls something else beside an acknowledgement, or before or after it.
TEST_F(NicBroadcastJob, CallsThatDifferAreFoundWhereARootIsAhead) {
  start_daemons();
  for (const std::vector<int>& host_of : {std::vector{0, 1, 2, 3}, {0, 0, 1, 2}}) {
    host_of_ = host_of;
    for (const int odd : {1, 3}) {
      for (const std::uint64_t after : {NicBroadcast::kInARow - 2, NicBroadcast::kInARow - 1,
                                        NicBroadcast::kInARow, NicBroadcast::kAhead}) {
        SCOPED_TRACE(std::to_string(odd) + " after " + std::to_string(after));
        expect_difference([&](const NicRank& self) {
          if (self.rank != odd) return error_so_far(self, broadcast_many(self, 0));
          for (std::uint64_t call = 0; call < after; ++call) {
            if (const int error = broadcast(self, 0); error != UNISONO_OK) return error;
          }
          return unisono_barrier(self.world);
        });
      }
    }
  }
}

// A rank that calls now and then is behind by as much as it may be.
TEST_F(NicBroadcastJob, ARankThatIsLateHoldsUpTheRootOnly) {
  start_daemons();
  for (const std::vector<int>& host_of : {std::vector{0, 1, 2, 3}, {0, 0, 1, 2}, {0, 1, 2, 0}}) {
    host_of_ = host_of;
    auto processes = start_job([](const NicRank& self) {
      for (int call = 0; call < scaled(200); ++call) {
        if (self.rank == 3 && call % 8 == 0) usleep(1500);
        ASSERT_NO_FATAL_FAILURE(check_broadcast(self, call, call / 50 % self.ranks, 100));
      }
      leave(self);
    });
    expect_all_clean(processes);
  }
}

TEST_F(NicBroadcastJob, ARootThatLeavesIsNamed) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(broadcast(self, 0)));
    if (self.rank != 2) {
      EXPECT_TRUE(failed(broadcast(self, 2), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    }
    unisono_finalize(self.world);
  });
  expect_all_clean(processes);
}

TEST_F(NicBroadcastJob, TheEndOfADaemonIsAnErrorForAll) {
  for (const int host : {2, 0}) {
    start_daemons();
    expect_told_of_daemon(host, [](const NicRank& self) { return broadcast(self, 0); });
  }
}

TEST_F(NicBroadcastJob, NoneIfTheUserForbidsThem) {
  constexpr int kCalls = 20;
  start_daemons();
  std::uint64_t before = 0;
  for (const auto& [wish, expected] : {std::pair("off", 0), {"on", kCalls}}) {
    environment_ = {{"UNISONO_NIC_ROOTED", wish}};
    auto processes = start_job([](const NicRank& self) {
      for (int call = 0; call < kCalls; ++call) {
        ASSERT_NO_FATAL_FAILURE(check_broadcast(self, call, call % self.ranks, 100));
      }
      leave(self);
    });
    expect_all_clean(processes);
    const std::uint64_t after = counted(UNISONO_NIC_BLOCK_SENT);
    EXPECT_EQ(after - before, static_cast<std::uint64_t>(kHosts + expected))
        << wish << ", with those of the trial";
    before = after;
  }
}

}  // namespace
}  // namespace unisono::harness::broadcast_job_test
