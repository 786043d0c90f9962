// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <latch>
#include <string>

namespace unisono::base {
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

}  // namespace
}  // namespace unisono::base
