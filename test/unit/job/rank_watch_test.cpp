// SPDX-License-Identifier: BSD-3-Clause
// How long after the death of a process the other ranks of its host know: who waits calls
// RankWatch::look() each watch interval at the latest, and the first call that far behind the last
// one looks. The job's time is a number here; the process is real.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "job/job.hpp"
#include "memory/memory_file.hpp"
#include "transport/shm/shm.hpp"

namespace unisono::job::rank_watch_test {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{1} << 24;

base::Result<std::unique_ptr<Job>> enter(int rank, std::pair<pid_t, pid_t> processes,
                                         std::shared_ptr<memory::JobMemory> memory,
                                         const base::Settings& settings) {
  bootstrap::JobInfo info;
  info.rank = rank;
  info.ranks = 2;
  info.job = "watch";
  info.members = {{.pid = processes.first}, {.pid = processes.second}};
  return Job::enter(info, std::move(memory), settings, std::make_unique<transport::SharedMemory>());
}

TEST(Watch, ADeathIsKnownWithinAFifthOfTheTimeout) {
  auto descriptor = memory::create_memory(kMemory);
  ASSERT_TRUE(descriptor.ok());
  auto mapped = memory::JobMemory::map(std::move(*descriptor), kMemory);
  ASSERT_TRUE(mapped.ok());
  const std::shared_ptr<memory::JobMemory> memory = std::move(*mapped);
  const base::Settings settings;
  const pid_t parent = getpid();
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    const auto job = enter(1, {parent, getpid()}, memory, settings);
    while (job.ok()) pause();
    _exit(1);
  }
  auto entered = enter(0, {parent, other}, memory, settings);
  if (!entered.ok()) kill(other, SIGKILL);
  ASSERT_TRUE(entered.ok()) << entered.error().message;
  Job& job = **entered;

  constexpr std::int64_t kTimeoutNs = base::kSecond;  // UNISONO_DETECT_TIMEOUT
  EXPECT_EQ(job.watch().interval_ns(), kTimeoutNs / 5);
  const std::int64_t begin_ns = base::now_ns() + 1'000 * base::kSecond;
  job.watch().look(begin_ns);
  EXPECT_EQ(job.ranks().state(1), RankState::present);
  kill(other, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(other), &info, WEXITED | WNOWAIT), 0);
  const std::uint32_t alarm = job.events().count();
  job.watch().look(begin_ns + kTimeoutNs / 100);
  EXPECT_EQ(job.ranks().state(1), RankState::present) << "many who wait do not look each";
  job.watch().look(begin_ns + kTimeoutNs / 5);
  EXPECT_EQ(job.ranks().state(1), RankState::dead);
  EXPECT_NE(job.events().count(), alarm);
  waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace unisono::job::rank_watch_test
