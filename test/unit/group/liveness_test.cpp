// SPDX-License-Identifier: BSD-3-Clause
// group/liveness: deaths of real processes are told, once each, by pidfd and through /proc.
#include "group/liveness.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "group/bootstrap/process.hpp"

namespace unisono::group {
namespace {

// A child that waits until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    kill_without_reaping();
    reap();
  }
  pid_t pid() const { return pid_; }
  void kill_without_reaping() {
    if (reaped_) return;
    kill(pid_, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void reap() {
    if (!reaped_) waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

class LivenessMethod : public testing::TestWithParam<Liveness::Method> {};

TEST_P(LivenessMethod, TellsEachDeathOnce) {
  Sleeper first;
  Sleeper second;
  Sleeper third;
  Liveness liveness({{getpid()}, {first.pid()}, {second.pid()}, {third.pid()}}, GetParam());
  EXPECT_EQ(liveness.watched(), 3U);
  EXPECT_TRUE(liveness.poll().empty());
  second.kill_without_reaping();  // a zombie has ended
  EXPECT_EQ(liveness.poll(), std::vector<int>{2});
  EXPECT_TRUE(liveness.poll().empty());
  third.kill_without_reaping();
  third.reap();
  first.kill_without_reaping();
  EXPECT_EQ(liveness.poll(), (std::vector<int>{1, 3}));
  EXPECT_TRUE(liveness.poll().empty());
  EXPECT_EQ(liveness.watched(), 0U);
}

TEST_P(LivenessMethod, AProcessThatWasGoneBeforeIsTold) {
  Sleeper gone;
  gone.kill_without_reaping();
  gone.reap();
  Liveness liveness({{getpid()}, {gone.pid()}}, GetParam());
  EXPECT_EQ(liveness.poll(), std::vector<int>{1});
  EXPECT_TRUE(liveness.poll().empty());
}

TEST_P(LivenessMethod, RanksOfOneProcessDieTogether) {
  Sleeper both;
  Liveness liveness({{both.pid()}, {getpid()}, {both.pid()}, {getpid()}}, GetParam());
  EXPECT_EQ(liveness.watched(), 1U);
  both.kill_without_reaping();
  EXPECT_EQ(liveness.poll(), (std::vector<int>{0, 2}));
}

INSTANTIATE_TEST_SUITE_P(Methods, LivenessMethod,
                         testing::Values(Liveness::Method::automatic, Liveness::Method::proc_only),
                         [](const auto& method) {
                           return method.param == Liveness::Method::automatic ? "pidfd" : "proc";
                         });

TEST(Liveness, WatchesMoreProcessesThanItHasDescriptors) {
  constexpr std::size_t kProcesses = Liveness::kMostDescriptors + 3;
  std::vector<std::unique_ptr<Sleeper>> sleepers;
  std::vector<Member> members;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    sleepers.push_back(std::make_unique<Sleeper>());
    members.push_back({sleepers.back()->pid()});
  }
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator listing("/proc/self/fd");
    return std::distance(begin(listing), end(listing));
  };
  const auto before = open_descriptors();
  Liveness liveness(members);
  EXPECT_EQ(liveness.watched(), kProcesses);
  EXPECT_LE(open_descriptors() - before, static_cast<std::ptrdiff_t>(Liveness::kMostDescriptors));
  sleepers.front()->kill_without_reaping();
  sleepers.back()->kill_without_reaping();
  EXPECT_EQ(liveness.poll(), (std::vector<int>{0, static_cast<int>(kProcesses) - 1}));
}

TEST(Liveness, WatchesNothingInAProcessOfThreads) {
  Liveness liveness({{getpid()}, {getpid()}});
  EXPECT_EQ(liveness.watched(), 0U);
  EXPECT_TRUE(liveness.poll().empty());
}

}  // namespace
}  // namespace unisono::group
