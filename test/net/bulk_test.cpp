// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several hosts whose long messages go by libfabric: the results of every collective, and
// the errors of the others when a rank dies, hangs, or cannot use it (agree_on_bulk). Without
// libfabric it is skipped, with the reason.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "harness/all_results.hpp"
#include "harness/own_stderr.hpp"
#include "harness/unattended.hpp"
#include "net/host_ranks.hpp"
#include "transport/ofi/ofi.hpp"

namespace unisono::harness {
namespace {

class HostsBulk : public HostsTest {
 protected:
  void SetUp() override {
    HostsTest::SetUp();
    if (IsSkipped()) return;
    const std::string description = transport::ofi_description();
    if (description.substr(0, 10) != "libfabric ") GTEST_SKIP() << description;
    setenv("UNISONO_BULK", "ofi", 1);
    // So that also messages of tests' sizes are long.
    setenv("UNISONO_BULK_FROM", "1K", 1);
  }
  void TearDown() override {
    unsetenv("UNISONO_BULK");
    unsetenv("UNISONO_BULK_FROM");
  }
};

// Several pieces for each rank, all of them long.
constexpr std::int64_t kLongCount = 100'000;

testing::AssertionResult allgather_is_right(const HostRank& self, std::int64_t count) {
  const auto input = own_values(self, count);
  std::vector<std::int64_t> all(input.size() * static_cast<std::size_t>(self.ranks));
  const auto called =
      succeeded(unisono_allgather(input.data(), all.data(), count, UNISONO_INT64, self.world));
  if (!called) return called;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const auto expected = static_cast<std::int64_t>(at % input.size() * 3 + at / input.size());
    if (all[at] != expected) {
      return testing::AssertionFailure() << "element " << at << " is " << all[at];
    }
  }
  return testing::AssertionSuccess();
}

TEST_F(HostsBulk, EveryCollectiveIsRight) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_everything(self));
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsBulk, LongMessagesInARow) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(allgather_is_right(self, kLongCount + i));
      std::vector<std::int64_t> values(static_cast<std::size_t>(kLongCount), self.rank);
      const int root = i % kRanks;
      ASSERT_TRUE(
          succeeded(unisono_broadcast(values.data(), kLongCount, UNISONO_INT64, root, self.world)));
      ASSERT_EQ(values.front(), root);
      ASSERT_EQ(values.back(), root);
    }
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsBulk, PacketsThatGetLostAreOnlyOthers) {
  setenv("UNISONO_FAULT", "loss=2%,duplicates=2%,reorder=2%", 1);
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_everything(self));
    leave(self);
  });
  unsetenv("UNISONO_FAULT");
  expect_all_clean(processes);
}

TEST_F(HostsBulk, OperationsEndThoughNoRankCalls) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_unattended(self));
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsBulk, ThreadsWithCommunicatorsOfTheirOwn) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    std::array<unisono_comm_t, 3> comms{};
    for (unisono_comm_t& comm : comms) ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &comm)));
    std::vector<std::thread> threads;
    for (unisono_comm_t comm : comms) {
      threads.emplace_back([&self, comm] {
        for (int i = 0; i < 20; ++i) {
          if (i % 5 == self.rank) usleep(5'000);  // late, so that the others sleep
          ASSERT_TRUE(allgather_is_right({self.rank, self.ranks, comm, self.line}, 5'000 + i));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (unisono_comm_t comm : comms) EXPECT_TRUE(succeeded(unisono_comm_free(comm)));
    leave(self);
  });
  expect_all_clean(processes);
}

// Amid long messages, the processes of rank `victim` end, or hang.
void expect_loss(const TestHosts& hosts, int victim, int signal) {
  auto processes = start_job(hosts, [victim, signal](const HostRank& self) {
    int error = UNISONO_OK;
    std::string message;
    for (int i = 0; error == UNISONO_OK; ++i) {
      if (self.rank == victim && i == 5) raise(signal);
      const auto input = own_values(self, kLongCount);
      std::vector<std::int64_t> all(input.size() * static_cast<std::size_t>(self.ranks));
      error = unisono_allgather(input.data(), all.data(), kLongCount, UNISONO_INT64, self.world);
      message = unisono_last_error();
    }
    EXPECT_EQ(error, UNISONO_ERROR_RANK_LOST) << message;
    EXPECT_NE(message.find("rank " + std::to_string(victim)), std::string::npos) << message;
    leave(self);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

TEST_F(HostsBulk, AKilledRankIsNamedOnAllHosts) { expect_loss(hosts_, 4, SIGKILL); }

TEST_F(HostsBulk, AHostThatIsGoneIsNoticed) { expect_loss(hosts_, 2, SIGKILL); }

TEST_F(HostsBulk, AHostThatHangsIsNoticed) { expect_loss(hosts_, 2, SIGSTOP); }

// A path that carries datagrams and no TCP segments, as behind some firewalls. Outgoing segments
// vanish, also in existing connections. The kernel would wait 15 minutes for those.
constexpr const char* kSwallowSent = "ip rule add pref 5 ipproto tcp blackhole";
// Incoming segments vanish too, so that no connection to or from the host can be made.
constexpr const char* kSwallowReceived =
    "ip rule add pref 10 lookup local && ip rule del pref 0 && "
    "ip rule add pref 5 iif eth0 ipproto tcp blackhole";

// Rank 2 has a host of its own; there `swallow` is called after some long messages.
void expect_stall_to_end(const TestHosts& hosts, int messages, const char* swallow) {
  auto processes = start_job(hosts, [messages, swallow](const HostRank& self) {
    const OwnStderr log;
    for (int i = 0; i < messages; ++i) ASSERT_TRUE(allgather_is_right(self, kLongCount));
    if (self.rank == 2) {
      ASSERT_EQ(std::system(swallow), 0) << swallow;
    }
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    int error = UNISONO_OK;
    while (error == UNISONO_OK) {
      const auto input = own_values(self, kLongCount);
      std::vector<std::int64_t> all(input.size() * static_cast<std::size_t>(self.ranks));
      error = unisono_allgather(input.data(), all.data(), kLongCount, UNISONO_INT64, self.world);
    }
    const std::string message = unisono_last_error();
    EXPECT_EQ(error, UNISONO_ERROR_RANK_LOST) << message;
    EXPECT_NE(message.find("is lost"), std::string::npos) << message;
    leave(self);
    const bool knows_why = log.text().find("have not moved for 1s") != std::string::npos;
    self.line.say(knows_why ? "knows why" : "was told");
  });
  int know_why = 0;
  for (const HostProcess& each : processes) know_why += each.line().hear() == "knows why" ? 1 : 0;
  EXPECT_GT(know_why, 0);
  expect_all_clean(processes);
}

TEST_F(HostsBulk, ATransferThatStallsThoughDatagramsPassIsALoss) {
  expect_stall_to_end(hosts_, 3, kSwallowSent);
}

// libfabric says again and again that it has no room yet.
TEST_F(HostsBulk, AConnectionThatIsNeverMadeIsALoss) {
  expect_stall_to_end(hosts_, 0, kSwallowReceived);
}

TEST_F(HostsBulk, IfOneRankCannotNoneDoesAndItIsNamed) {
  for (const bool insists : {true, false}) {
    setenv("UNISONO_BULK", insists ? "ofi" : "auto", 1);
    std::vector<HostProcess> processes;
    for (int rank = 0; rank < kRanks; ++rank) {
      processes.push_back(hosts_.start(host_of(rank), [rank, insists](const Line& line) {
        set_environment(rank);
        if (rank == 3) setenv("UNISONO_OFI_PROVIDER", "pigeon", 1);
        unisono_comm_t world = nullptr;
        const int code = unisono_init(&world);
        if (insists) {
          EXPECT_TRUE(failed(code, UNISONO_ERROR_UNSUPPORTED, {"UNISONO_BULK is ofi", "rank 3"}));
          // Others have its reason, or find before it comes that this rank cannot.
          const std::string said = unisono_last_error();
          const bool has_reason = said.find("'pigeon'") != std::string::npos;
          const bool refers = said.find("it says why") != std::string::npos;
          EXPECT_TRUE(has_reason || (rank != 3 && refers)) << said;
          return;
        }
        ASSERT_TRUE(succeeded(code));
        ASSERT_NO_FATAL_FAILURE(check_everything(HostRank{rank, kRanks, world, line}));
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
      }));
    }
    expect_all_clean(processes);
  }
}

}  // namespace
}  // namespace unisono::harness
