// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several hosts, from unisono_init to unisono_finalize: results of every collective, and
// the errors of the others when a rank makes a wrong call, leaves, is killed or hangs. Each rank is
// a process on a host with its own network, hostname and memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "harness/all_results.hpp"
#include "harness/elsewhere.hpp"
#include "harness/own_stderr.hpp"
#include "harness/scale.hpp"
#include "harness/unattended.hpp"
#include "net/host_ranks.hpp"
#include "reliable/link/burst.hpp"
#include "transport/udp/sockets.hpp"

namespace unisono::harness::job_test {
namespace {

// One rank on each host; `environment` is theirs.
std::vector<HostProcess> start_one_each(
    const TestHosts& hosts, int ranks,
    const std::vector<std::pair<std::string, std::string>>& environment,
    const std::function<void(int, const Line&)>& body) {
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(hosts.start(rank, [&, rank](const Line& line) {
      set_environment(rank);
      setenv("UNISONO_SIZE", std::to_string(ranks).c_str(), 1);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      body(rank, line);
    }));
  }
  return processes;
}

class HostsJob : public HostsTest {};

TEST_F(HostsJob, EveryCollectiveIsRight) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_everything(self));
    leave(self);
  });
  expect_all_clean(processes);
}

// Element i of a rank's vector. In most orders a sum of five ranks' numbers loses the small ones.
double cancelling_number(int rank, int i) {
  constexpr double kNumbers[kRanks] = {1e16, 1, -1e16, 1, 0x1p-1074};
  return kNumbers[static_cast<std::size_t>((rank + i) % kRanks)];
}

void check_exact_sums(const HostRank& self, int count) {
  std::vector<double> all;
  for (int i = 0; i < kRanks * count; ++i) all.push_back(cancelling_number(self.rank, i));
  const std::vector<double> mine(all.begin(), all.begin() + count);
  const std::vector<double> expected(mine.size(), 2.0);
  std::vector<double> sum(mine.size());
  ASSERT_TRUE(succeeded(
      unisono_allreduce(mine.data(), sum.data(), count, UNISONO_FLOAT64, UNISONO_SUM, self.world)));
  EXPECT_EQ(sum, expected);
  std::vector<double> at_root(mine.size(), self.rank == 2 ? 0.0 : 2.0);
  ASSERT_TRUE(succeeded(unisono_reduce(mine.data(), at_root.data(), count, UNISONO_FLOAT64,
                                       UNISONO_SUM, 2, self.world)));
  EXPECT_EQ(at_root, expected);
  std::vector<double> block(mine.size());
  ASSERT_TRUE(succeeded(unisono_reduce_scatter_block(all.data(), block.data(), count,
                                                     UNISONO_FLOAT64, UNISONO_SUM, self.world)));
  EXPECT_EQ(block, expected);
}

TEST_F(HostsJob, ReproducibleSumsAreExact) {
  for (const char* multicast : {"auto", "off"}) {
    auto processes = start_job(hosts_,
                               [](const HostRank& self) {
                                 for (const int count : {1, 300, 60'000}) {
                                   ASSERT_NO_FATAL_FAILURE(check_exact_sums(self, count));
                                 }
                                 leave(self);
                               },
                               {{"UNISONO_REPRODUCIBLE", "1"}, {"UNISONO_MULTICAST", multicast}});
    expect_all_clean(processes);
  }
}

// The settings insist on it: without, the ranks would not start.
TEST_F(HostsJob, MulticastBetweenHosts) {
  for (const char* algorithms : {"",
                                 "barrier: gather-release | allreduce: gather-release | "
                                 "allgather: gather-release"}) {
    auto processes = start_one_each(
        hosts_, kHosts, {{"UNISONO_MULTICAST", "on"}, {"UNISONO_ALGORITHM", algorithms}},
        [](int rank, const Line& line) {
          unisono_comm_t world = nullptr;
          ASSERT_TRUE(succeeded(unisono_init(&world)));
          ASSERT_NO_FATAL_FAILURE(check_everything(HostRank{rank, kHosts, world, line}));
          EXPECT_TRUE(succeeded(unisono_finalize(world)));
        });
    expect_all_clean(processes);
  }
}

// Datagrams that this host has sent by each family.
struct Sent {
  std::int64_t v4 = 0, v6 = 0;
};

// One counter of a file of /proc/net with lines of names and values; -1: it has none.
std::int64_t read_counter(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::int64_t value = -1;
    if (word == name && file >> value) return value;
  }
  return -1;
}

// In /proc/net/snmp, a line of names stands above a line of values.
std::int64_t read_udp4_sent() {
  std::ifstream file("/proc/net/snmp");
  std::string names, values;
  while (std::getline(file, names) && std::getline(file, values)) {
    if (!names.starts_with("Udp:")) continue;
    std::istringstream name_words(names), value_words(values);
    std::string name, value;
    while (name_words >> name && value_words >> value) {
      if (name == "OutDatagrams") return std::stoll(value);
    }
  }
  return -1;
}

Sent datagrams_sent() {
  return {read_udp4_sent(), read_counter("/proc/net/snmp6", "Udp6OutDatagrams")};
}

// A message to all is one packet, which each host's rank reads in its copy of the sender's memory.
// One by one they would be kHosts - 1. So few broadcasts are no row whose packets wait for each
// other, together with what the start has sent.
constexpr std::int64_t kBroadcasts = 100;
static_assert(2 * kBroadcasts < reliable::Burst::kRow);

TEST_F(HostsJob, AMulticastIsOnePacketForAllHosts) {
  auto processes =
      start_one_each(hosts_, kHosts, {{"UNISONO_MULTICAST", "on"}}, [](int rank, const Line&) {
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        ASSERT_TRUE(succeeded(unisono_barrier(world)));
        const std::int64_t before = read_udp4_sent();
        for (std::int64_t i = 0; i < kBroadcasts; ++i) {
          std::int64_t value = rank == 0 ? i : -1;
          ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, 0, world)));
          ASSERT_EQ(value, i);
        }
        const std::int64_t sent = read_udp4_sent() - before;
        if (rank == 0) {
          EXPECT_GE(sent, kBroadcasts);
          EXPECT_LT(sent, (kHosts - 1) * kBroadcasts);
        }
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
      });
  expect_all_clean(processes);
}

// Whether the kernel takes several datagrams as one message.
bool joins_datagrams() {
  const base::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return transport::probe_features(socket, true).segmentation;
}

// A root that does nothing but broadcast lets several wait for each other. The kernel counts those
// that leave together as one. Where other programs compute, nothing waits, so the rows go on until
// one is shorter than its calls.
TEST_F(HostsJob, ARowOfBroadcastsLeavesInBursts) {
  if (!joins_datagrams()) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  auto processes =
      start_one_each(hosts_, kHosts, {{"UNISONO_MULTICAST", "on"}}, [](int rank, const Line& line) {
        constexpr std::int64_t kRow = 10 * reliable::Burst::kRow;
        constexpr int kRows = 300;
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        std::int64_t has_joined = 0;
        for (int row = 0; row < kRows && has_joined == 0; ++row) {
          const std::int64_t before = read_udp4_sent();
          ASSERT_GE(before, 0);
          for (std::int64_t i = 0; i < kRow; ++i) {
            std::int64_t value = rank == 0 ? i : -1;
            ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, 0, world)));
            ASSERT_EQ(value, i);
          }
          has_joined = read_udp4_sent() - before < kRow ? 1 : 0;
          ASSERT_TRUE(succeeded(unisono_broadcast(&has_joined, 1, UNISONO_INT64, 0, world)));
        }
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
        if (rank == 0) line.say(has_joined != 0 ? "joined" : "alone");
      });
  const bool has_joined = processes.front().line().hear() == "joined";
  expect_all_clean(processes);
  // Beside other programs packets do not wait.
  if (!has_joined) GTEST_SKIP() << "no burst in 300 rows: the cores were busy all the time";
}

// The last broadcasts of a row arrive although the root waits for something else.
TEST_F(HostsJob, ARootThatLeavesARowForOtherWorkKeepsNothingBack) {
  constexpr int kTurns = 20;
  auto processes =
      start_one_each(hosts_, kHosts, {{"UNISONO_MULTICAST", "on"}}, [](int rank, const Line& line) {
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        for (int turn = 0; turn < kTurns; ++turn) {
          const std::int64_t row = 2 * reliable::Burst::kRow + turn;
          for (std::int64_t i = 0; i < row; ++i) {
            std::int64_t value = rank == 0 ? i : -1;
            ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, 0, world)));
            ASSERT_EQ(value, i);
          }
          if (rank == 0) {
            ASSERT_EQ(line.hear(), "all there");
          } else {
            line.say("there");
          }
        }
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
      });
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int rank = 1; rank < kHosts; ++rank) {
      ASSERT_EQ(processes[static_cast<std::size_t>(rank)].line().hear(), "there");
    }
    processes[0].line().say("all there");
  }
  expect_all_clean(processes);
}

// The family of the rendezvous is that of all packets.
TEST_F(HostsJob, OverIpv6) {
  for (const char* multicast : {"on", "off"}) {
    SCOPED_TRACE(multicast);
    auto processes = start_one_each(
        hosts_, kHosts,
        {{"UNISONO_RENDEZVOUS", "tcp:[fd77::1]:7000"}, {"UNISONO_MULTICAST", multicast}},
        [](int rank, const Line& line) {
          const Sent before = datagrams_sent();
          unisono_comm_t world = nullptr;
          ASSERT_TRUE(succeeded(unisono_init(&world)));
          ASSERT_NO_FATAL_FAILURE(check_everything(HostRank{rank, kHosts, world, line}));
          EXPECT_TRUE(succeeded(unisono_finalize(world)));
          const Sent after = datagrams_sent();
          ASSERT_GE(before.v4, 0);
          ASSERT_GE(before.v6, 0);
          EXPECT_GT(after.v6, before.v6 + 100);
          EXPECT_EQ(after.v4, before.v4);
        });
    expect_all_clean(processes);
  }
}

// Packets that may not leave their host stand for a network without multicast.
TEST_F(HostsJob, WithoutMulticastAJobGoesOnUnlessItInsists) {
  const auto try_to_start = [this](const char* wish, bool starts) {
    auto processes = start_one_each(
        hosts_, kHosts, {{"UNISONO_MULTICAST", wish}, {"UNISONO_MULTICAST_TTL", "0"}},
        [starts, wish](int rank, const Line& line) {
          unisono_comm_t world = nullptr;
          const int code = unisono_init(&world);
          ASSERT_EQ(code == UNISONO_OK, starts) << wish << ": " << unisono_last_error();
          if (!starts) {
            EXPECT_EQ(code, UNISONO_ERROR_UNSUPPORTED);
            const std::string message = unisono_last_error();
            EXPECT_NE(message.find("UNISONO_MULTICAST is on"), std::string::npos) << message;
            EXPECT_NE(message.find("rank " + std::to_string(rank)), std::string::npos) << message;
            // A rank that has not found it itself names the rank that reported it.
            const bool is_told = message.find("cannot start, as rank") != std::string::npos;
            EXPECT_EQ(message.find("failed: rank") != std::string::npos, is_told) << message;
            return;
          }
          ASSERT_NO_FATAL_FAILURE(check_everything(HostRank{rank, kHosts, world, line}));
          EXPECT_TRUE(succeeded(unisono_finalize(world)));
        });
    expect_all_clean(processes);
  };
  try_to_start("auto", true);
  try_to_start("off", true);
  try_to_start("on", false);
}

// Run ahead of each other, further than the slot indexes go.
TEST_F(HostsJob, ManyOperationsInARow) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    for (int i = 0; i < 1000; ++i) {
      std::int64_t value = self.rank == i % kRanks ? i : -1;
      ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, i % kRanks, self.world)));
      ASSERT_EQ(value, i);
    }
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsJob, CommunicatorsOfSomeHosts) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    for (int round = 0; round < 5; ++round) {
      // All on one host; then some of each host.
      for (const int color : {host_of(self.rank), self.rank / 3}) {
        unisono_comm_t part = nullptr;
        ASSERT_TRUE(succeeded(unisono_comm_split(self.world, color, self.rank, &part)));
        unisono_comm_t twin = nullptr;
        ASSERT_TRUE(succeeded(unisono_comm_dup(part, &twin)));
        int size = 0;
        ASSERT_TRUE(succeeded(unisono_comm_size(twin, &size)));
        int sum = 0;
        const int one = 1;
        ASSERT_TRUE(succeeded(unisono_allreduce(&one, &sum, 1, UNISONO_INT32, UNISONO_SUM, twin)));
        EXPECT_EQ(sum, size);
        ASSERT_TRUE(succeeded(unisono_comm_free(part)));
        ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
      }
    }
    leave(self);
  });
  expect_all_clean(processes);
}

// Each thread of a rank has a communicator of its own; they sleep and wake each other.
TEST_F(HostsJob, ThreadsWithCommunicatorsOfTheirOwn) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    std::array<unisono_comm_t, 3> comms{};
    for (unisono_comm_t& comm : comms) ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &comm)));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < comms.size(); ++t) {
      threads.emplace_back([&self, &comms, t] {
        for (int i = 0; i < 200; ++i) {
          // One rank is late now and then, so that the others sleep.
          if (i % 50 == self.rank) usleep(5'000);
          std::vector<std::int64_t> sums(static_cast<std::size_t>(1 + i * 7 % 500));
          const std::vector<std::int64_t> values(sums.size(), i + static_cast<int>(t));
          ASSERT_TRUE(succeeded(unisono_allreduce(values.data(), sums.data(),
                                                  static_cast<std::int64_t>(sums.size()),
                                                  UNISONO_INT64, UNISONO_SUM, comms[t])));
          ASSERT_EQ(sums.back(), kRanks * values.back());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (unisono_comm_t comm : comms) EXPECT_TRUE(succeeded(unisono_comm_free(comm)));
    leave(self);
  });
  expect_all_clean(processes);
}

// Many more than fit into the memory at a time, each with other contents in its receive buffers and
// counts.
TEST_F(HostsJob, CommunicatorsMakeRoomForLaterOnes) {
  setenv("UNISONO_SHARED_LIMIT", "160M", 1);
  auto processes = start_job(hosts_, [](const HostRank& self) {
    for (int round = 0; round < 60; ++round) {
      unisono_comm_t twin = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin))) << "round " << round;
      for (int i = 0; i < 1 + round * 7 % 150; ++i) {
        std::int64_t sum = 0;
        const std::int64_t value = round + i;
        ASSERT_TRUE(
            succeeded(unisono_allreduce(&value, &sum, 1, UNISONO_INT64, UNISONO_SUM, twin)));
        ASSERT_EQ(sum, kRanks * value);
      }
      ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
    }
    leave(self);
  });
  unsetenv("UNISONO_SHARED_LIMIT");
  expect_all_clean(processes);
}

// A member that leaves last writes how far it came into the memory of hosts that have left before.
// A later communicator of more ranks has other data in that place.
TEST_F(HostsJob, WhatALateMemberWritesReachesNoLaterCommunicator) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    const int color = self.rank < 2 ? 0 : -1;  // two hosts
    unisono_comm_t first = nullptr, large = nullptr, second = nullptr, late = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, color, 0, &first)));
    for (int i = 0; i < 3 && first != nullptr; ++i) {
      ASSERT_TRUE(succeeded(unisono_barrier(first)));
    }
    // Leaves free, behind the first one, as much as a communicator of all ranks needs more.
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &large)));
    ASSERT_TRUE(succeeded(unisono_comm_free(large)));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, color, 0, &second)));
    if (self.rank == 1) {
      ASSERT_TRUE(succeeded(unisono_comm_free(first)));
    }
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 0) {
      ASSERT_TRUE(succeeded(unisono_comm_free(first)));
    }
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &late)));
    std::int64_t sum = 0;
    const std::int64_t one = 1;
    ASSERT_TRUE(succeeded(unisono_allreduce(&one, &sum, 1, UNISONO_INT64, UNISONO_SUM, late)));
    // Ranks that search where their calls differ look at all of that memory.
    const int op = self.rank == 2 ? UNISONO_MAX : UNISONO_SUM;
    EXPECT_TRUE(failed(unisono_allreduce(&one, &sum, 1, UNISONO_INT64, op, late),
                       UNISONO_ERROR_MISMATCH, {"operation 1 ", "rank 2"}));
    if (second != nullptr) {
      EXPECT_TRUE(succeeded(unisono_comm_free(second)));
    }
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsJob, ABadCallIsToldToAllHosts) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    std::int32_t value = 1;
    const int root = self.rank == 3 ? 77 : 0;
    const int error = unisono_broadcast(&value, 1, UNISONO_INT32, root, self.world);
    if (self.rank == 3) {
      EXPECT_TRUE(failed(error, UNISONO_ERROR_ARGUMENT, {"root is 77", "rank 3"}));
    } else {
      EXPECT_TRUE(failed_with_any(unisono_barrier(self.world), {UNISONO_ERROR_PEER_ARGUMENT},
                                  {"rank 3", "root is 77"}));
    }
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsJob, CallsThatDifferAreFound) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    std::int64_t sum = 0;
    const std::int64_t one = 1;
    const int op = self.rank == 2 ? UNISONO_MAX : UNISONO_SUM;
    EXPECT_TRUE(failed(unisono_allreduce(&one, &sum, 1, UNISONO_INT64, op, self.world),
                       UNISONO_ERROR_MISMATCH));
    unisono_finalize(self.world);
  });
  expect_all_clean(processes);
}

TEST_F(HostsJob, ARankThatLeavesIsNamed) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank != 4) {
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 4"}));
    }
    leave(self);
  });
  expect_all_clean(processes);
}

// The processes of rank `victim` end, or hang, while the others wait for it.
void expect_loss(const TestHosts& hosts, int victim, int signal, const std::string& how) {
  auto processes = start_job(hosts, [victim, signal, &how](const HostRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == victim) {
      self.line.hear();
      raise(signal);
      FAIL() << "goes on";
    }
    self.line.say("ready");
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                       {"rank " + std::to_string(victim), place_of(victim), how}));
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST));
    leave(self);
  });
  lose_when_others_are_ready(processes, {victim});
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

// Rank 1 is on the same host and sees its end; the others are informed.
TEST_F(HostsJob, AKilledRankIsNamedOnAllHosts) {
  expect_loss(hosts_, 4, SIGKILL, "its process ended without finalize");
}

TEST_F(HostsJob, AHostThatIsGoneIsNoticed) {
  expect_loss(hosts_, 2, SIGKILL, "it does not answer");
}

TEST_F(HostsJob, AHostThatHangsIsNoticed) { expect_loss(hosts_, 2, SIGSTOP, "it does not answer"); }

// While one rank is late by seconds, another that waits leaves its core to others. A tenth of the
// time is allowed: the machine may be busy, and the sender of a packet pays for its whole path.
TEST_F(HostsJob, AWaitBurnsNothing) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 2) {
      sleep(3);
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    } else {
      const auto cpu_ms = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
      };
      const long before = cpu_ms();
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      std::printf("rank %d: %ld ms of processor time for a wait of 3 s\n", self.rank,
                  cpu_ms() - before);
      EXPECT_LT(cpu_ms() - before, 300);
    }
    leave(self);
  });
  expect_all_clean(processes);
}

TEST_F(HostsJob, OperationsEndThoughNoRankCalls) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_unattended(self));
    leave(self);
  });
  expect_all_clean(processes);
}

// With one rank on each, the network's own thread is the agent.
TEST_F(HostsJob, OperationsOfSingleRanksEndThoughNoneCalls) {
  auto processes = start_one_each(hosts_, kHosts, {}, [](int rank, const Line& line) {
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(unisono_init(&world)));
    ASSERT_NO_FATAL_FAILURE(check_unattended(HostRank{rank, kHosts, world, line}));
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
  expect_all_clean(processes);
}

TEST_F(HostsJob, RanksGoOnWhileTheyWaitForAnotherCommunicator) {
  for (const char* const agent : {"auto", "off"}) {
    SCOPED_TRACE(agent);
    const Environment environment = {{"UNISONO_AGENT", agent}, {"UNISONO_TIMEOUT", "60s"}};
    auto processes = start_job(
        hosts_,
        [](const HostRank& self) {
          ASSERT_NO_FATAL_FAILURE(check_waits_elsewhere(self));
          leave(self);
        },
        environment);
    expect_all_clean(processes);
    for (const int ranks : {2, kHosts}) {
      auto singles =
          start_one_each(hosts_, ranks, environment, [ranks](int rank, const Line& line) {
            unisono_comm_t world = nullptr;
            ASSERT_TRUE(succeeded(unisono_init(&world)));
            ASSERT_NO_FATAL_FAILURE(check_waits_elsewhere(HostRank{rank, ranks, world, line}));
            EXPECT_TRUE(succeeded(unisono_finalize(world)));
          });
      expect_all_clean(singles);
    }
  }
}

constexpr const char* kBadNetwork = "loss=10%,duplicates=5%,reorder=5%";

// Or the network was not bad, and the test shows nothing. On a good one a busy machine makes some
// hundred repetitions, on this one there are more than ten thousand.
void expect_repairs(const std::string& log) {
  const std::size_t end = log.find(" packets repeated");
  ASSERT_NE(end, std::string::npos) << log;
  const std::size_t begin = log.rfind(' ', end - 1) + 1;
  EXPECT_GT(std::stoll(log.substr(begin, end - begin)), scaled(std::int64_t{1000})) << log;
}

TEST_F(HostsJob, EveryCollectiveIsRightOnABadNetwork) {
  setenv("UNISONO_FAULT", kBadNetwork, 1);
  setenv("UNISONO_BULK", "udp", 1);  // long messages need repairs, too
  setenv("UNISONO_LOG", "info", 1);
  auto processes = start_job(hosts_, [](const HostRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_everything(self));
    const OwnStderr log;
    leave(self);
    expect_repairs(log.text());
  });
  unsetenv("UNISONO_FAULT");
  unsetenv("UNISONO_BULK");
  unsetenv("UNISONO_LOG");
  expect_all_clean(processes);
}

// A root that computes and does not call the library: its agent answers requests for lost packets.
TEST_F(HostsJob, ARootThatDoesNotCallRepairs) {
  for (const char* const multicast : {"on", "off"}) {
    SCOPED_TRACE(multicast);
    setenv("UNISONO_FAULT", kBadNetwork, 1);
    setenv("UNISONO_MULTICAST", multicast, 1);
    auto processes = start_job(hosts_, [](const HostRank& self) {
      for (std::int64_t i = 0; i < 100; ++i) {
        std::int64_t value = self.rank == 0 ? i : -1;
        ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, 0, self.world)));
        ASSERT_EQ(value, i);
      }
      if (self.rank == 0) {
        self.line.hear();  // until all others have everything
      } else {
        self.line.say("all there");
      }
      leave(self);
    });
    unsetenv("UNISONO_FAULT");
    unsetenv("UNISONO_MULTICAST");
    for (std::size_t rank = 1; rank < processes.size(); ++rank) {
      EXPECT_EQ(processes[rank].line().hear(), "all there") << rank;
    }
    processes[0].line().say("go on");
    expect_all_clean(processes);
  }
}

TEST_F(HostsJob, ARankThatComputesIsNotLost) {
  auto processes = start_job(hosts_, [](const HostRank& self) {
    if (self.rank == 2) {
      const std::int64_t until = base::now_ns() + 2 * base::kSecond;
      while (base::now_ns() < until) {
      }
    }
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    leave(self);
  });
  expect_all_clean(processes);
}

}  // namespace
}  // namespace unisono::harness::job_test
