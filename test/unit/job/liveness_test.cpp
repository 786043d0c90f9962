// SPDX-License-Identifier: BSD-3-Clause
// job/loss/liveness: deaths of real processes are told, once each, by pidfd and through /proc.
#include "job/loss/liveness.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/process_record.hpp"

namespace unisono::job::liveness_test {
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

// With /proc out of reach as well, a process counts as alive while the kernel knows it.
TEST(Liveness, ALackOfDescriptorsIsNoDeath) {
  Sleeper child;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Liveness liveness({{getpid()}, {child.pid()}});
  const std::vector<int> at_once = liveness.poll();
  EXPECT_FALSE(base::read_process(child.pid()).has_value());  // the test tests something
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(at_once.empty());
  EXPECT_EQ(liveness.watched(), 1U);
  EXPECT_TRUE(liveness.poll().empty());
  setrlimit(RLIMIT_NOFILE, &none);
  const std::vector<int> later = liveness.poll();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(later.empty());
  child.kill_without_reaping();
  EXPECT_EQ(liveness.poll(), std::vector<int>{1});
}

bool is_readable(int descriptor) {
  pollfd source{descriptor, POLLIN, 0};
  return poll(&source, 1, 0) == 1;
}

// Also where a child of this process has inherited what was watched.
TEST(Liveness, ItsDescriptorIsReadableFromADeathUntilItIsTold) {
  Sleeper first;
  Sleeper second;
  Liveness liveness({{getpid()}, {first.pid()}, {second.pid()}});
  if (liveness.descriptor() < 0) GTEST_SKIP() << "no pidfds on this kernel";
  const Sleeper heir;
  EXPECT_FALSE(is_readable(liveness.descriptor()));
  for (Sleeper* const sleeper : {&first, &second}) {
    sleeper->kill_without_reaping();
    EXPECT_TRUE(is_readable(liveness.descriptor()));
    EXPECT_EQ(liveness.poll().size(), 1U);
    EXPECT_FALSE(is_readable(liveness.descriptor()));
  }
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
  std::vector<bootstrap::RankLocation> members;
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

TEST(Liveness, LooksAtProcOnlyWhereThatIsDue) {
  Sleeper first, second;
  Liveness liveness({{first.pid()}, {second.pid()}}, Liveness::Method::proc_only);
  first.kill_without_reaping();
  second.kill_without_reaping();
  EXPECT_TRUE(liveness.poll([](int) { return false; }).empty());
  EXPECT_EQ(liveness.poll([](int rank) { return rank == 1; }), std::vector<int>{1});
  EXPECT_EQ(liveness.poll(), std::vector<int>{0});
}

TEST(Liveness, OneRankOfAHostLooksInEachInterval) {
  std::atomic<std::int64_t> looked_ns = 0;
  EXPECT_TRUE(is_first_to_look(looked_ns, 1'000, 100));
  EXPECT_FALSE(is_first_to_look(looked_ns, 1'000, 100)) << "another one";
  EXPECT_FALSE(is_first_to_look(looked_ns, 1'099, 100));
  EXPECT_TRUE(is_first_to_look(looked_ns, 1'100, 100));
  EXPECT_FALSE(is_first_to_look(looked_ns, 1'050, 100)) << "a clock that was read before";
}

TEST(Liveness, WatchesNothingInAProcessOfThreads) {
  Liveness liveness({{getpid()}, {getpid()}});
  EXPECT_EQ(liveness.watched(), 0U);
  EXPECT_TRUE(liveness.poll().empty());
}

TEST(Liveness, KnowsAProcessThatIsStopped) {
  Sleeper sleeper;
  EXPECT_FALSE(process_is_stopped(sleeper.pid()));
  kill(sleeper.pid(), SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.pid()), &info, WSTOPPED), 0);
  EXPECT_TRUE(process_is_stopped(sleeper.pid()));
  kill(sleeper.pid(), SIGCONT);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.pid()), &info, WCONTINUED), 0);
  EXPECT_FALSE(process_is_stopped(sleeper.pid()));
  sleeper.kill_without_reaping();
  sleeper.reap();
  EXPECT_FALSE(process_is_stopped(sleeper.pid()));
}

constexpr std::int64_t kLimitNs = base::kSecond;

// Looks at these times, at all of which the process is stopped.
StopWatch stopped_at(std::initializer_list<std::int64_t> times_ms, std::int64_t start_ms = 1000) {
  StopWatch watch(0);
  for (const std::int64_t time_ms : times_ms) {
    watch = watch.seen(true, (start_ms + time_ms) * base::kMillisecond, kLimitNs);
    EXPECT_TRUE(watch.is_stopped());
  }
  return watch;
}

TEST(StopWatch, IsOverWhenAStopWasSeenForTheWholeLimit) {
  EXPECT_FALSE(stopped_at({0, 400, 800, 999}).is_over(kLimitNs));
  EXPECT_TRUE(stopped_at({0, 400, 800, 1000}).is_over(kLimitNs));
}

TEST(StopWatch, BeginsAnewWhenTheProcessRan) {
  const StopWatch ran = stopped_at({0, 500, 900}).seen(false, 1950 * base::kMillisecond, kLimitNs);
  EXPECT_FALSE(ran.is_stopped());
  EXPECT_FALSE(ran.seen(true, 2400 * base::kMillisecond, kLimitNs).is_over(kLimitNs));
}

// As after a stop of the whole job, of which this one is continued last.
TEST(StopWatch, DoesNotCountWhatNobodySaw) {
  EXPECT_FALSE(stopped_at({0, 501, 1001}).is_over(kLimitNs));
  EXPECT_FALSE(stopped_at({0, 3'600'000}).is_over(kLimitNs));
}

// Its clock has 32 bits.
TEST(StopWatch, GoesOnWhenItsClockBeginsAgain) {
  constexpr std::int64_t kLast = (std::int64_t{1} << 32) - 500;
  EXPECT_TRUE(stopped_at({0, 400, 800, 1000}, kLast).is_over(kLimitNs));
  EXPECT_FALSE(stopped_at({0, 400, 800, 999}, kLast).is_over(kLimitNs));
}

TEST(StopWatch, SharesLooks) {
  EXPECT_TRUE(StopWatch(0).is_due(0, kLimitNs));
  const StopWatch watch = stopped_at({0});
  EXPECT_FALSE(watch.is_due(1099 * base::kMillisecond, kLimitNs));
  EXPECT_TRUE(watch.is_due(1100 * base::kMillisecond, kLimitNs));
}

}  // namespace
}  // namespace unisono::job::liveness_test
