// SPDX-License-Identifier: BSD-3-Clause
// A rank of a job of several hosts that is lost after the rendezvous and before the job has begun:
// unisono_init of all others names it and says how it was lost. The deadline of the start lies
// behind this test's own guard, so none of them waits for it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "harness/few_descriptors.hpp"
#include "harness/start_by_hand.hpp"
#include "net/host_ranks.hpp"

namespace unisono::harness::start_test {
namespace {

constexpr const char* kEnded = "its process ended without finalize";
constexpr const char* kSilent = "it does not answer";

class HostsStart : public HostsTest {};

enum class Moment { before_it_is_present, before_all_confirm };

struct LossAtStart {
  int victim = 0;
  Moment moment = Moment::before_it_is_present;
  int signal = SIGKILL;  // 0: it exits
  std::string how;
  std::string silence = "1h";  // UNISONO_DETECT_TIMEOUT_HOSTS
};

void be_lost(const LossAtStart& loss) {
  StartByHand start;
  ASSERT_NO_FATAL_FAILURE(start.meet());
  if (loss.moment == Moment::before_all_confirm) {
    const base::Status entered = start.enter();
    ASSERT_TRUE(entered.ok()) << entered.error().message;
  }
  if (loss.signal == 0) _exit(0);
  raise(loss.signal);
  FAIL() << "goes on";
}

void expect_all_to_name(const TestHosts& hosts, const LossAtStart& loss) {
  SCOPED_TRACE(loss.victim);
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.push_back(hosts.start(host_of(rank), [rank, &loss](const Line&) {
      set_environment(rank);
      setenv("UNISONO_START_TIMEOUT", "1h", 1);
      setenv("UNISONO_DETECT_TIMEOUT_HOSTS", loss.silence.c_str(), 1);
      if (rank == loss.victim) return be_lost(loss);
      unisono_comm_t world = nullptr;
      EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_RANK_LOST,
                         {"unisono_init",
                          "rank " + std::to_string(loss.victim) + " is lost (" +
                              place_of(loss.victim) + "; " + loss.how,
                          "the job cannot start"}));
    }));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == loss.victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

// Another rank of its host sees its end, and tells the other hosts: nobody waits for silence.
TEST_F(HostsStart, ARankThatIsKilledBeforeItIsPresentIsNamedOnAllHosts) {
  for (const int victim : {4, 1, 3, 0}) {
    expect_all_to_name(hosts_, {.victim = victim, .how = kEnded});
  }
}

TEST_F(HostsStart, ARankThatIsKilledBeforeAllConfirmIsNamedOnAllHosts) {
  for (const int victim : {4, 1, 3, 0}) {
    expect_all_to_name(hosts_,
                       {.victim = victim, .moment = Moment::before_all_confirm, .how = kEnded});
  }
}

TEST_F(HostsStart, ARankThatExitsIsNamedOnAllHosts) {
  expect_all_to_name(hosts_, {.victim = 1, .signal = 0, .how = kEnded});
}

// The only rank of its host: its connection to the rendezvous ends with it.
TEST_F(HostsStart, TheOnlyRankOfAHostThatIsKilledIsNamedOnAllHosts) {
  for (const Moment moment : {Moment::before_it_is_present, Moment::before_all_confirm}) {
    expect_all_to_name(hosts_, {.victim = 2, .moment = moment, .how = kEnded});
  }
}

// The only rank of its host. The others cannot know whether its process has ended.
TEST_F(HostsStart, AHostThatDoesNotAnswerIsNotSaidToHaveEnded) {
  for (const Moment moment : {Moment::before_it_is_present, Moment::before_all_confirm}) {
    expect_all_to_name(hosts_, {.victim = 2,
                                .moment = moment,
                                .signal = SIGSTOP,
                                .how = kSilent,
                                .silence = kDetectTimeout});
  }
}

// Every rank's init fails, and says which rank has what.
void expect_all_to_hear(const TestHosts& hosts, int victim, const char* name, const char* value) {
  SCOPED_TRACE(name);
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.push_back(hosts.start(host_of(rank), [=](const Line&) {
      set_environment(rank);
      setenv("UNISONO_START_TIMEOUT", "1h", 1);
      setenv("UNISONO_DETECT_TIMEOUT_HOSTS", "1h", 1);
      if (rank == victim) setenv(name, value, 1);
      unisono_comm_t world = nullptr;
      std::vector<std::string> parts = {"unisono_init", value};
      if (rank != victim) parts.push_back("rank " + std::to_string(victim) + " (");
      const int error = unisono_init(&world);
      EXPECT_NE(error, UNISONO_ERROR_TIMEOUT);
      EXPECT_TRUE(failed_with_any(
          error, {UNISONO_ERROR_ARGUMENT, UNISONO_ERROR_SYSTEM, UNISONO_ERROR_STATE}, parts));
    }));
  }
  expect_all_clean(processes);
}

TEST_F(HostsStart, AnInvalidSettingOfOneRankIsToldToAllHosts) {
  for (const int victim : {0, 1, 4}) {
    expect_all_to_hear(hosts_, victim, "UNISONO_BUFFERS", "junk");
    expect_all_to_hear(hosts_, victim, "UNISONO_ALGORITHM", "nonsense");
  }
}

// It has none for a socket, for another step of the rendezvous, or for what follows it. Either all
// start or all get an error that says so, while the rank lives on.
TEST_F(HostsStart, WhateverDescriptorARankLacksAllHostsHear) {
  for (const int victim : {0, 1, 2}) {
    bool all_start = false;
    for (int left = 0; !all_start && !testing::Test::HasFailure(); ++left) {
      SCOPED_TRACE(fmt::format("rank {} with {} descriptors", victim, left));
      std::vector<HostProcess> processes;
      for (int rank = 0; rank < kRanks; ++rank) {
        processes.push_back(hosts_.start(host_of(rank), [=](const Line& line) {
          set_environment(rank);
          setenv("UNISONO_START_TIMEOUT", "1h", 1);
          setenv("UNISONO_DETECT_TIMEOUT_HOSTS", "1h", 1);
          if (rank == victim) leave_descriptors(left);
          unisono_comm_t world = nullptr;
          const int error = unisono_init(&world);
          line.say(error == UNISONO_OK ? "started" : unisono_last_error());
          if (error == UNISONO_OK) {
            EXPECT_TRUE(succeeded(unisono_finalize(world)));
          }
          EXPECT_EQ(line.hear(), "end");
        }));
      }
      std::vector<std::string> said;
      for (const HostProcess& each : processes) said.push_back(each.line().hear());
      all_start = said[static_cast<std::size_t>(victim)] == "started";
      for (const std::string& line : said) {
        EXPECT_EQ(line == "started", all_start) << line;
        const bool explains = line.find("Too many open files") != std::string::npos ||
                              line.find("descriptor") != std::string::npos;
        EXPECT_TRUE(all_start || explains) << line;
      }
      for (const HostProcess& each : processes) each.line().say("end");
      expect_all_clean(processes);
    }
  }
}

// It has no address space for the job's memory. The others hear which rank it is, before it ends.
TEST_F(HostsStart, AMemoryThatOneRankCannotMapIsToldToAllHosts) {
  for (const int victim : {0, 1, 4}) {
    SCOPED_TRACE(victim);
    std::vector<HostProcess> processes;
    for (int rank = 0; rank < kRanks; ++rank) {
      processes.push_back(hosts_.start(host_of(rank), [=](const Line&) {
        set_environment(rank);
        setenv("UNISONO_START_TIMEOUT", "1h", 1);
        setenv("UNISONO_DETECT_TIMEOUT_HOSTS", "1h", 1);
        constexpr rlim_t kEnoughForAllElse = rlim_t{4} << 30;
        const rlimit little{.rlim_cur = kEnoughForAllElse, .rlim_max = kEnoughForAllElse};
        if (rank == victim) {
          ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
        }
        unisono_comm_t world = nullptr;
        const std::string part =
            rank == victim ? "could not be mapped" : "rank " + std::to_string(victim) + " (";
        EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_RESOURCES, {part}));
      }));
    }
    expect_all_clean(processes);
  }
}

// Rank 0 finds it when all are present.
TEST_F(HostsStart, AMachineFileThatIsMissingIsToldToAllHosts) {
  expect_all_to_hear(hosts_, 0, "UNISONO_MACHINE", "/there/is/no/such/file");
}

// The lines of all ranks' stderr about settings that do not exist. `names`: a rank's, or nullptr.
std::vector<std::string> warnings_of(const TestHosts& hosts,
                                     const std::vector<const char*>& names) {
  std::array<int, 2> log{};
  EXPECT_EQ(pipe2(log.data(), O_CLOEXEC), 0);
  const base::Descriptor reading(log[0]);
  base::Descriptor writing(log[1]);
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    const char* const name = names[static_cast<std::size_t>(rank)];
    processes.push_back(hosts.start(host_of(rank), [rank, name, &writing](const Line&) {
      dup2(writing.get(), STDERR_FILENO);
      set_environment(rank);
      if (name != nullptr) setenv(name, "1", 1);
      unisono_comm_t world = nullptr;
      ASSERT_TRUE(succeeded(unisono_init(&world)));
      EXPECT_TRUE(succeeded(unisono_finalize(world)));
    }));
  }
  writing.reset();
  expect_all_clean(processes);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t count; (count = read(reading.get(), part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find("unknown setting") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

TEST_F(HostsStart, OneRankOfEachHostWarnsOfAnUnknownSetting) {
  const auto lines =
      warnings_of(hosts_, {nullptr, "UNISONO_ENGIN", nullptr, nullptr, "UNISONO_ENGIN"});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(":1 [settings] unknown setting UNISONO_ENGIN "), std::string::npos)
      << lines[0];
}

TEST_F(HostsStart, OnlyRankZeroWarnsWhereAllHaveTheSameUnknownSetting) {
  const auto lines = warnings_of(hosts_, std::vector<const char*>(kRanks, "UNISONO_ENGIN"));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(" [settings] unknown setting UNISONO_ENGIN "), std::string::npos)
      << lines[0];
}

}  // namespace
}  // namespace unisono::harness::start_test
