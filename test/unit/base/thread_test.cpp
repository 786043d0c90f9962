// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
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
