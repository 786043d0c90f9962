// SPDX-License-Identifier: BSD-3-Clause
// A word from the test to a rank of a ProcessJob: job.signal(rank, kWord). The rank makes a Word
// before it says that it is there, so that none is missed. One thread.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

namespace unisono::harness {

inline constexpr int kWord = SIGUSR1;

class Word {
 public:
  Word() {
    sigemptyset(&word_);
    sigaddset(&word_, kWord);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &word_, nullptr), 0);
  }
  void await() const {
    int got = 0;
    EXPECT_EQ(sigwait(&word_, &got), 0);
  }

 private:
  sigset_t word_;
};

}  // namespace unisono::harness
