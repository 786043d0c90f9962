// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several hosts whose long messages go by streams, or by libfabric: the results of every
// collective, and the errors of the others when a rank dies, hangs, or cannot use it
// (agree_on_bulk). Without libfabric its part is skipped, with the reason.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "harness/all_results.hpp"
#include "harness/own_stderr.hpp"
#include "harness/unattended.hpp"
#include "net/host_ranks.hpp"
#include "transport/ofi/ofi.hpp"
#include "transport/tcp/stream_socket.hpp"

namespace unisono::harness::bulk_test {
namespace {

// Whether the carrier of that name can be used here; the reason if not.
std::string reason_without(const std::string& carrier) {
  if (carrier == "tcp") return "";
  const std::string description = transport::ofi_description();
  return description.substr(0, 10) == "libfabric " ? "" : description;
}

class HostsBulk : public HostsTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    HostsTest::SetUp();
    if (IsSkipped()) return;
    use(GetParam());
  }
  static void use(const std::string& carrier) {
    const std::string reason = reason_without(carrier);
    if (!reason.empty()) GTEST_SKIP() << reason;
    setenv("UNISONO_BULK", carrier.c_str(), 1);
    // So that also messages of tests' sizes are long.
    setenv("UNISONO_BULK_FROM", "1K", 1);
  }
  void TearDown() override {
    unsetenv("UNISONO_BULK");
    unsetenv("UNISONO_BULK_FROM");
  }
};

INSTANTIATE_TEST_SUITE_P(By, HostsBulk, testing::Values("tcp", "ofi"),
                         [](const auto& each) { return each.param; });

class HostsOfi : public HostsBulk {
 protected:
  void SetUp() override {
    HostsTest::SetUp();
    if (!IsSkipped()) use("ofi");
  }
};
class HostsTcp : public HostsBulk {
 protected:
  void SetUp() override {
    HostsTest::SetUp();
    if (!IsSkipped()) use("tcp");
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

TEST_P(HostsBulk, EveryCollectiveIsRight) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_everything(self));
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_P(HostsBulk, LongMessagesInARow) {
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

TEST_P(HostsBulk, PacketsThatGetLostAreOnlyOthers) {
  setenv("UNISONO_FAULT", "loss=2%,duplicates=2%,reorder=2%", 1);
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_everything(self));
    leave(self);
  });
  unsetenv("UNISONO_FAULT");
  expect_all_clean(processes);
}

TEST_P(HostsBulk, OperationsEndThoughNoRankCalls) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_unattended(self));
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_P(HostsBulk, ThreadsWithCommunicatorsOfTheirOwn) {
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

TEST_P(HostsBulk, AKilledRankIsNamedOnAllHosts) { expect_loss(hosts_, 4, SIGKILL); }

TEST_P(HostsBulk, AHostThatIsGoneIsNoticed) { expect_loss(hosts_, 2, SIGKILL); }

TEST_P(HostsBulk, AHostThatHangsIsNoticed) { expect_loss(hosts_, 2, SIGSTOP); }

// A path that carries datagrams and no TCP segments, as behind some firewalls. Outgoing segments
// vanish, also in existing connections. The kernel would wait 15 minutes for those.
constexpr const char* kSwallowSent = "ip rule add pref 5 ipproto tcp blackhole";
// Incoming segments vanish too, so that no connection to or from the host can be made.
constexpr const char* kSwallowReceived =
    "ip rule add pref 10 lookup local && ip rule del pref 0 && "
    "ip rule add pref 5 iif eth0 ipproto tcp blackhole";

std::string stalled() { return std::string("have not moved for ") + kDetectTimeout; }

// Rank 2 has a host of its own; there `swallow` is called after some long messages. `reason`: what
// the rank that notices it logs.
void expect_stall_to_end(const TestHosts& hosts, int messages, const char* swallow,
                         const std::string& reason) {
  auto processes = start_job(hosts, [messages, swallow, &reason](const HostRank& self) {
    const OwnStderr log;
    for (int i = 0; i < messages; ++i) ASSERT_TRUE(allgather_is_right(self, kLongCount));
    // A rank's call may return while others still receive what it sent.
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
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
    const bool knows_why = log.text().find(reason) != std::string::npos;
    self.line.say(knows_why ? "knows why" : "was told");
  });
  int know_why = 0;
  for (const HostProcess& each : processes) know_why += each.line().hear() == "knows why" ? 1 : 0;
  EXPECT_GT(know_why, 0);
  expect_all_clean(processes);
}

TEST_P(HostsBulk, ATransferThatStallsThoughDatagramsPassIsALoss) {
  const bool is_tcp = GetParam() == "tcp";
  expect_stall_to_end(hosts_, 3, kSwallowSent,
                      is_tcp ? "broke with bytes that it may lack" : stalled());
}

std::int64_t buffer_bytes(const HostRank& self) {
  unisono_comm_info_t info{};
  info.size = sizeof info;
  EXPECT_TRUE(succeeded(unisono_comm_info(self.world, &info)));
  return info.buffer_bytes;
}

// Those of long messages are longer with more members, but few calls use all of them.
TEST_F(HostsTcp, BuffersBecomeRealMemoryAsFarAsCallsUseThem) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_TRUE(allgather_is_right(self, 8 * 1024));  // 64 KiB of each rank
    const std::int64_t after_short = buffer_bytes(self);
    ASSERT_TRUE(allgather_is_right(self, 8 * 1024));
    EXPECT_EQ(buffer_bytes(self), after_short);
    ASSERT_TRUE(allgather_is_right(self, 1024 * 1024));  // 8 MiB of each
    const std::int64_t after_long = buffer_bytes(self);
    EXPECT_GT(after_long, after_short);
    EXPECT_LE(after_long, std::int64_t{64} << 20);
    ASSERT_TRUE(allgather_is_right(self, 8 * 1024));
    ASSERT_TRUE(allgather_is_right(self, 3 * 1024 * 1024));
    EXPECT_EQ(buffer_bytes(self), after_long);
    leave(self);
  });
  expect_all_clean(processes);
}

// A rank does not know the others' counts.
TEST_F(HostsTcp, ShortCallsWithLocalCountsUseLittleMemory) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(self.ranks), 1);
    const std::vector<std::int64_t> sent(counts.size(), self.rank);
    std::vector<std::int64_t> received(counts.size(), -1);
    const std::int64_t before = buffer_bytes(self);
    ASSERT_TRUE(succeeded(unisono_alltoallv(sent.data(), counts.data(), nullptr, received.data(),
                                            counts.data(), nullptr, UNISONO_INT64, self.world)));
    for (int r = 0; r < self.ranks; ++r) EXPECT_EQ(received[static_cast<std::size_t>(r)], r);
    EXPECT_LE(buffer_bytes(self) - before, std::int64_t{24} << 20);
    leave(self);
  });
  expect_all_clean(processes);
}

// With changed payloads this would not be noticed (tcp_test.cpp).
TEST_F(HostsTcp, WithoutTagsEveryCollectiveIsRight) {
  auto processes = start_job(hosts_,
                             [](const HostRank& self) {
                               ASSERT_NO_FATAL_FAILURE(check_everything(self));
                               leave(self);
                             },
                             {{"UNISONO_BULK_TAGS", "off"}});
  expect_all_clean(processes);
}

// Shorter than the time after which a rank is lost.
TEST_F(HostsTcp, StreamsGoOnAfterAnOutage) {
  auto processes = start_job(hosts_,
                             [](const HostRank& self) {
                               for (int i = 0; i < 3; ++i)
                                 ASSERT_TRUE(allgather_is_right(self, kLongCount));
                               std::thread outage;
                               if (self.rank == 2) {
                                 outage = std::thread([] {
                                   EXPECT_EQ(std::system(kSwallowSent), 0);
                                   usleep(1'500'000);  // how long it lasts
                                   EXPECT_EQ(std::system("ip rule del pref 5"), 0);
                                 });
                               }
                               for (int i = 0; i < 30; ++i)
                                 ASSERT_TRUE(allgather_is_right(self, kLongCount + i));
                               if (outage.joinable()) outage.join();
                               leave(self);
                             },
                             {{"UNISONO_DETECT_TIMEOUT_HOSTS", "30s"}});
  expect_all_clean(processes);
}

// libfabric says again and again that it has no room yet.
TEST_F(HostsOfi, AConnectionThatIsNeverMadeIsALoss) {
  expect_stall_to_end(hosts_, 0, kSwallowReceived, stalled());
}

// All ranks start with `cripple` called on one. Those that insist on the carrier get the error.
struct Crippled {
  int rank;
  void (*cripple)();
};
void expect_one_cannot(const TestHosts& hosts, bool insists, const std::string& carrier,
                       const std::string& why, const Crippled& crippled) {
  const std::string name = "rank " + std::to_string(crippled.rank);
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.push_back(hosts.start(host_of(rank), [&, rank](const Line& line) {
      set_environment(rank);
      if (rank == crippled.rank) crippled.cripple();
      unisono_comm_t world = nullptr;
      const int code = unisono_init(&world);
      if (insists) {
        EXPECT_TRUE(failed(code, UNISONO_ERROR_UNSUPPORTED, {"UNISONO_BULK is " + carrier, name}))
            << "rank " << rank;
        // Others have its reason, or find before it comes that this rank cannot.
        const std::string said = unisono_last_error();
        const bool has_reason = said.find(why) != std::string::npos;
        const bool refers = said.find("it says why") != std::string::npos;
        EXPECT_TRUE(has_reason || (rank != crippled.rank && refers)) << said;
        return;
      }
      ASSERT_TRUE(succeeded(code));
      ASSERT_NO_FATAL_FAILURE(check_everything(HostRank{rank, kRanks, world, line}));
      EXPECT_TRUE(succeeded(unisono_finalize(world)));
    }));
  }
  expect_all_clean(processes);
}

TEST_F(HostsOfi, IfOneRankCannotNoneDoesAndItIsNamed) {
  expect_one_cannot(hosts_, true, "ofi", "'pigeon'",
                    {3, [] { setenv("UNISONO_OFI_PROVIDER", "pigeon", 1); }});
}

// From now on this process cannot listen for streams.
void forbid_listening() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_listen, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, transport::kStreamBacklog, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST_F(HostsTcp, IfOneRankCannotNoneDoesAndItIsNamed) {
  expect_one_cannot(hosts_, true, "tcp", "listen: Permission denied", {3, forbid_listening});
}

TEST_F(HostsTcp, IfOneRankCannotAllGoWithoutIfNobodyInsists) {
  setenv("UNISONO_BULK", "auto", 1);
  expect_one_cannot(hosts_, false, "tcp", "", {3, forbid_listening});
}

// Rank 2 has a host of its own. Segments that come to it vanish, but for those of the rendezvous.
void swallow_streams() {
  ASSERT_EQ(std::system("ip rule add pref 10 lookup local && ip rule del pref 0 && "
                        "ip rule add pref 4 iif eth0 ipproto tcp sport 7000 lookup local && "
                        "ip rule add pref 5 iif eth0 ipproto tcp blackhole"),
            0);
}

TEST_F(HostsTcp, IfNoConnectionCanBeMadeLongMessagesGoAsDatagrams) {
  expect_one_cannot(hosts_, false, "tcp", "", {2, swallow_streams});
}

}  // namespace
}  // namespace unisono::harness::bulk_test
