// SPDX-License-Identifier: BSD-3-Clause
// A rank that is lost after the rendezvous and before the job has begun: the others' init names it,
// and does not wait for the deadline of the start, which lies behind this test's own guard. The
// victim goes through the start by hand, so that it ends exactly where it shall.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "harness/few_descriptors.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "harness/start_by_hand.hpp"
#include "job/loss/liveness.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::start_test {
namespace {

void kill_and_await_end(const StartByHand& start, int rank) {
  const auto& members = start.info().members;
  ASSERT_EQ(kill(members[static_cast<std::size_t>(rank)].pid, SIGKILL), 0);
  job::Liveness liveness(members);
  while (liveness.poll() != std::vector<int>{rank}) sched_yield();
}

// Looks into the job's memory, without being entered.
void await_presence_of(const StartByHand& start, int rank) {
  const memory::JobMemory& memory = start.memory();
  const auto* header = reinterpret_cast<job::JobHeader*>(memory.at(memory::kSegmentAlignment / 2));
  while (header->doorbells_offset.load(std::memory_order_acquire) == 0) sched_yield();
  const auto* table = reinterpret_cast<job::RankHeader*>(memory.at(header->ranks_offset.load()));
  constexpr auto present = static_cast<std::uint32_t>(job::RankState::present);
  while (table[rank].state.load(std::memory_order_acquire) != present) sched_yield();
}

ProcessJob::Options patient() {
  ProcessJob::Options options;
  options.joins = false;
  options.environment["UNISONO_START_TIMEOUT"] = "1h";
  return options;
}

void init_names_the_lost(int victim) {
  unisono_comm_t world = nullptr;
  EXPECT_TRUE(
      failed(unisono_init(&world), UNISONO_ERROR_RANK_LOST,
             {"unisono_init", fmt::format("rank {} is lost", victim), "the job cannot start"}));
  EXPECT_EQ(world, nullptr);
}

TEST(LostAtStart, BeforeItIsPresent) {
  for (const int victim : {0, 2}) {
    SCOPED_TRACE(victim);
    const auto shm_before = unisono_files_in_shm();
    ProcessJob job(
        4,
        [&](const ProcessRank& self) {
          if (self.rank != victim) return init_names_the_lost(victim);
          StartByHand start;
          ASSERT_NO_FATAL_FAILURE(start.meet());
          raise(SIGKILL);
        },
        patient());
    job.expect_all_clean(victim);
    EXPECT_EQ(job.wait(victim).status, SIGKILL);
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

// Ranks 0 and 2 wait in init for rank 1, which sees to it that rank 2 dies there.
TEST(LostAtStart, WhileItWaitsForOthers) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(
      3,
      [](const ProcessRank& self) {
        if (self.rank != 1) return init_names_the_lost(2);
        StartByHand start;
        ASSERT_NO_FATAL_FAILURE(start.meet());
        await_presence_of(start, 2);
        ASSERT_NO_FATAL_FAILURE(kill_and_await_end(start, 2));
        const base::Status entered = start.enter();
        ASSERT_FALSE(entered.ok());
        EXPECT_EQ(entered.error().code, base::Code::rank_lost);
        EXPECT_NE(entered.error().message.find("rank 2 is lost"), std::string::npos)
            << entered.error().message;
      },
      patient());
  job.expect_all_clean(2);
  EXPECT_EQ(job.wait(2).status, SIGKILL);
  EXPECT_TRUE(nothing_left(job, shm_before));
}

// All are present, and rank 0 owes them the world communicator.
TEST(LostAtStart, TheLeaderDies) {
  ProcessJob job(
      3,
      [](const ProcessRank& self) {
        if (self.rank != 0) return init_names_the_lost(0);
        StartByHand start;
        ASSERT_NO_FATAL_FAILURE(start.meet());
        EXPECT_TRUE(start.enter().ok());
        raise(SIGKILL);
      },
      patient());
  job.expect_all_clean(0);
  EXPECT_EQ(job.wait(0).status, SIGKILL);
}

// As after an error of its own, after which its process continues.
TEST(LostAtStart, TheLeaderLeaves) {
  ProcessJob job(
      3,
      [](const ProcessRank& self) {
        if (self.rank != 0) return init_names_the_lost(0);
        StartByHand start;
        ASSERT_NO_FATAL_FAILURE(start.meet());
        EXPECT_TRUE(start.enter().ok());
        start.leave();
        pause();
      },
      patient());
  for (const int rank : {1, 2}) EXPECT_TRUE(job.wait(rank).clean()) << job.wait(rank).text();
  job.signal(0, SIGKILL);
  EXPECT_EQ(job.wait(0).status, SIGKILL);
}

// The others wait for it until the deadline of the start, and say that its process is stopped.
TEST(LostAtStart, AStoppedRankIsNotSaidToHaveEnded) {
  for (const bool is_present : {false, true}) {
    ProcessJob::Options options = patient();
    options.environment["UNISONO_START_TIMEOUT"] = "2s";
    ProcessJob job(
        3,
        [is_present](const ProcessRank& self) {
          if (self.rank == 2) {
            StartByHand start;
            ASSERT_NO_FATAL_FAILURE(start.meet());
            if (is_present) {
              EXPECT_TRUE(start.enter().ok());
            }
            raise(SIGSTOP);
            return;
          }
          unisono_comm_t world = nullptr;
          EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_TIMEOUT,
                             {"UNISONO_START_TIMEOUT", "2 (its process ", " is stopped)"}));
        },
        options);
    for (const int rank : {0, 1}) EXPECT_TRUE(job.wait(rank).clean()) << job.wait(rank).text();
    job.signal(2, SIGKILL);
    EXPECT_EQ(job.wait(2).status, SIGKILL);
  }
}

// All others hear of it at the rendezvous, long before the deadline.
TEST(RefusedAtStart, AnInvalidSettingOfOneRankIsToldToAll) {
  const std::vector<std::pair<const char*, const char*>> invalid = {
      {"UNISONO_BUFFERS", "junk"},
      {"UNISONO_ALGORITHM", "nonsense"},
      {"UNISONO_NETWORKS", "10.0.0.0/99"}};
  for (const auto& [name, value] : invalid) {
    for (const int victim : {0, 2}) {
      SCOPED_TRACE(victim);
      ProcessJob job(
          3,
          [&](const ProcessRank& self) {
            if (self.rank == victim) setenv(name, value, 1);
            unisono_comm_t world = nullptr;
            std::vector<std::string> parts = {"unisono_init", name, value};
            if (self.rank != victim) parts.push_back(fmt::format("rank {} (pid ", victim));
            EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_ARGUMENT, parts));
          },
          patient());
      job.expect_all_clean();
    }
  }
}

// It has none for a socket, for another step of the rendezvous, or for what follows it. Either all
// start or all get an error that says so, while the rank lives on.
TEST(RefusedAtStart, WhateverDescriptorARankLacksAllHear) {
  for (const int victim : {0, 2}) {
    bool all_start = false;
    for (int left = 0; !all_start && !testing::Test::HasFailure(); ++left) {
      SCOPED_TRACE(fmt::format("rank {} with {} descriptors", victim, left));
      ProcessJob job(
          3,
          [&](const ProcessRank& self) {
            if (self.rank == victim) leave_descriptors(left);
            unisono_comm_t world = nullptr;
            const int error = unisono_init(&world);
            self.say(error == UNISONO_OK ? "started" : unisono_last_error());
            if (error == UNISONO_OK) {
              EXPECT_TRUE(succeeded(unisono_finalize(world)));
            } else if (self.rank == victim) {
              pause();
            }
          },
          patient());
      job.await_line_of_all();
      for (const int other : {0, 1, 2}) {
        if (other == victim) continue;
        EXPECT_TRUE(job.wait(other).clean()) << job.wait(other).text();
      }
      job.signal(victim, SIGKILL);
      const std::string said = job.wait(victim).lines.front();
      all_start = said == "started";
      for (const int other : {0, 1, 2}) {
        const std::string& line = job.wait(other).lines.front();
        EXPECT_EQ(line == "started", all_start) << line << "\n" << said;
        const bool explains = line.find("Too many open files") != std::string::npos ||
                              line.find("descriptor") != std::string::npos;
        EXPECT_TRUE(all_start || explains) << line;
      }
    }
  }
}

// It connects, and has no descriptor left for what it has to read.
TEST(RefusedAtStart, ARankWithoutDescriptorsIsToldToAll) {
  ProcessJob job(
      3,
      [&](const ProcessRank& self) {
        if (self.rank == 2) {
          ASSERT_NO_FATAL_FAILURE(leave_descriptors(1));
        }
        unisono_comm_t world = nullptr;
        EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_SYSTEM,
                           {"rank 2 (pid ", "Too many open files"}));
      },
      patient());
  job.expect_all_clean();
}

// Rank 0 cannot listen at an address that another process has taken, and does not listen there.
TEST(RefusedAtStart, AnAddressThatRankZeroCannotTakeIsToldToItsHost) {
  const base::Descriptor taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  ProcessJob::Options options = patient();
  options.environment["UNISONO_RENDEZVOUS"] =
      fmt::format("tcp:127.0.0.1:{}", ntohs(address.sin_port));
  options.environment["UNISONO_JOB_KEY"] = "the key of this test job";
  ProcessJob job(
      3,
      [](const ProcessRank&) {
        unisono_comm_t world = nullptr;
        EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_SYSTEM,
                           {"cannot serve the rendezvous at tcp:127.0.0.1:", "listens there"}));
      },
      options);
  job.expect_all_clean();
}

// It has no address space for the job's memory, which shows only after the rendezvous. It lives on:
// its end tells nobody.
TEST(RefusedAtStart, AMemoryThatOneRankCannotMapIsToldToAll) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space for itself";
  for (const int victim : {0, 2}) {
    SCOPED_TRACE(victim);
    ProcessJob job(
        3,
        [&](const ProcessRank& self) {
          constexpr rlim_t kEnoughForAllElse = rlim_t{4} << 30;
          const rlimit little{.rlim_cur = kEnoughForAllElse, .rlim_max = kEnoughForAllElse};
          if (self.rank == victim) {
            ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
          }
          unisono_comm_t world = nullptr;
          std::vector<std::string> parts = {"could not be mapped", "ulimit -v"};
          if (self.rank != victim) parts.push_back(fmt::format("as rank {} failed", victim));
          ASSERT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_RESOURCES, parts));
          self.say("told");
          if (self.rank == victim) pause();
        },
        patient());
    EXPECT_TRUE(job.await_line(victim));
    for (const int other : {0, 1, 2}) {
      if (other == victim) continue;
      EXPECT_TRUE(job.wait(other).clean()) << job.wait(other).text();
    }
    job.signal(victim, SIGKILL);
    EXPECT_EQ(job.wait(victim).lines, std::vector<std::string>{"told"});
  }
}

}  // namespace
}  // namespace unisono::harness::start_test
