// SPDX-License-Identifier: BSD-3-Clause
// NoSignals: while it lives, threads that are started take no signals, so that the application's
// handlers do not run in the library's threads, and its own thread takes none either.
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
