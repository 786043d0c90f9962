// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>

namespace unisono::base::thread_test {
namespace {

TEST(Thread, HasANameAndTakesNoSignals) {
  sigset_t blocked;
  sigemptyset(&blocked);
  std::latch asked(1);
  Result<std::thread> started = start_thread("a-thread-of-15c", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    asked.wait();
  });
  ASSERT_TRUE(started.ok()) << started.error().message;
  std::array<char, 16> name{};
  EXPECT_EQ(pthread_getname_np(started->native_handle(), name.data(), name.size()), 0);
  asked.count_down();
  started->join();
  EXPECT_EQ(std::string(name.data()), "a-thread-of-15c");
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM}) {
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGUSR1), 0) << "the thread that has started it takes them still";
}

TEST(Thread, AsideIsNotWaitedForByOneThatGivesItUp) {
  const auto release = std::make_shared<std::latch>(1);
  const auto ended = std::make_shared<std::latch>(1);
  {
    auto started = start_aside<int>("aside", [=] {
      release->wait();
      ended->count_down();
      return 7;
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    EXPECT_EQ(started->wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  }  // here a future of std::async would wait for ever
  release->count_down();
  ended->wait();
  auto again = start_aside<int>("aside", [] { return 8; });
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->get(), 8);
}

TEST(Thread, ACallWithOwnDescriptorsLeavesThoseOfTheProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const int least = dup(ends[0]);
  ASSERT_EQ(close(least), 0);
  const Status called = call_with_own_descriptors("own", [&] {
    EXPECT_LT(fcntl(STDIN_FILENO, F_GETFD), 0);
    EXPECT_LT(fcntl(ends[0], F_GETFD), 0);
    EXPECT_GE(fcntl(STDERR_FILENO, F_GETFD), 0);
    EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  });
  EXPECT_TRUE(called.ok());
  EXPECT_EQ(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(write(ends[1], "a", 1), 1) << "the other end is open still";
  EXPECT_EQ(dup(ends[0]), least) << "and nothing was opened here";
  for (const int each : {ends[0], ends[1], least}) close(each);
}

TEST(Thread, AnExceptionOfACallWithOwnDescriptorsGoesToTheCaller) {
  const auto throws = [] { throw std::runtime_error("thrown there"); };
  EXPECT_THROW(static_cast<void>(call_with_own_descriptors("own", throws)), std::runtime_error);
}

TEST(Thread, ACallAsideIsGivenUpAtItsLimit) {
  const auto release = std::make_shared<std::latch>(1);
  const auto ended = std::make_shared<std::latch>(1);
  const auto answer = call_aside<int>(
      "aside",
      [=] {
        release->wait();
        ended->count_down();
        return 7;
      },
      0);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_FALSE(answer->has_value());
  release->count_down();
  ended->wait();
  constexpr std::int64_t kMinute = 60'000'000'000;
  EXPECT_EQ(*call_aside<int>(
                "aside", [] { return 8; }, kMinute),
            8);
}

}  // namespace
}  // namespace unisono::base::thread_test
