// SPDX-License-Identifier: BSD-3-Clause
// NoSignals: blocks all signals in the calling thread while it exists. Threads started meanwhile
// inherit that, so the application's handlers do not run in the library's threads.
#pragma once

#include <signal.h>

namespace unisono::base {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace unisono::base
