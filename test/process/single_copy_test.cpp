// SPDX-License-Identifier: BSD-3-Clause
// Single copies where the system forbids a rank to read another's memory: `on` is an error on every
// rank that says so and what to do, and `auto` goes through buffers. The ranks forbid it
// themselves: they give up root, if they have it, and make themselves unreadable (PR_SET_DUMPABLE).
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::single_copy_test {
namespace {

constexpr int kRanks = 3;
constexpr unsigned kNobody = 65534;

bool may_trace() {
  constexpr unsigned kCapSysPtrace = 19;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) != 0) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> kCapSysPtrace & 1) != 0;
  }
  return false;
}

// Why this process stays readable to others of its user; empty if it does not.
std::string become_unreadable() {
  if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
                         setresuid(kNobody, kNobody, kNobody) != 0)) {
    return std::string("root cannot be given up here: ") + std::strerror(errno);
  }
  // A change of user undid this.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (may_trace()) return "these processes have CAP_SYS_PTRACE and may read any other";
  if (prctl(PR_SET_DUMPABLE, 0) != 0)
    return std::string("PR_SET_DUMPABLE: ") + std::strerror(errno);
  return {};
}

class Unreadable : public testing::Test {
 protected:
  // Runs `body` on ranks that cannot read each other, or skips the test.
  void run(const std::string& single_copy, const std::function<void(ProcessRank&)>& body) {
    ProcessJob::Options options;
    options.joins = false;
    options.environment["UNISONO_SINGLE_COPY"] = single_copy;
    options.environment["UNISONO_SINGLE_COPY_FROM"] = "64";
    const auto shm_before = unisono_files_in_shm();
    ProcessJob job(
        kRanks,
        [&body](ProcessRank& self) {
          const std::string obstacle = become_unreadable();
          self.say(obstacle);
          if (obstacle.empty()) body(self);
        },
        options);
    job.await_line_of_all();
    job.expect_all_clean();
    EXPECT_TRUE(nothing_left(job, shm_before));
    const std::string obstacle = job.wait(0).lines.at(0);
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

TEST_F(Unreadable, SingleCopiesThatAreAskedForAreAnErrorOnEveryRank) {
  run("on", [](ProcessRank& self) {
    unisono_comm_t world = nullptr;
    EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_UNSUPPORTED,
                       {fmt::format("rank {}", self.rank), "UNISONO_SINGLE_COPY is on",
                        "3 of 3 ranks may not read the others' memory", "kernel.yama.ptrace_scope",
                        "CAP_SYS_PTRACE", "Leave it at auto"}));
    EXPECT_EQ(world, nullptr);
  });
}

TEST_F(Unreadable, WithAutoLongMessagesGoThroughBuffers) {
  run("auto", [](ProcessRank&) {
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(unisono_init(&world)));
    const std::vector<std::int32_t> input(1000, 2);
    std::vector<std::int32_t> output(input.size() * kRanks);
    ASSERT_TRUE(
        succeeded(unisono_allgather(input.data(), output.data(), 1000, UNISONO_INT32, world)));
    EXPECT_EQ(output, std::vector<std::int32_t>(output.size(), 2));
    unisono_comm_info_t info{};
    info.size = sizeof info;
    ASSERT_TRUE(succeeded(unisono_comm_info(world, &info)));
    EXPECT_EQ(std::string(info.engine).find("pull"), std::string::npos) << info.engine;
    ASSERT_TRUE(succeeded(unisono_finalize(world)));
  });
}

}  // namespace
}  // namespace unisono::harness::single_copy_test
