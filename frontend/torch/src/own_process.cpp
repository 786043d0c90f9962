// SPDX-License-Identifier: BSD-3-Clause
#include "own_process.hpp"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>

namespace unisono::pytorch {
namespace {

std::atomic<unsigned> forks = 0;  // from the first process to this one

void count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  TORCH_CHECK(registered == 0, "unisono: pthread_atfork: error ", registered);
}

}  // namespace

OwnProcess::OwnProcess() {
  count_forks();
  forks_ = forks.load(std::memory_order_relaxed);
}

bool OwnProcess::is_here() const { return forks_ == forks.load(std::memory_order_relaxed); }

void OwnProcess::require(const char* name) const {
  TORCH_CHECK_WITH(DistBackendError, is_here(), name,
                   ": this process is a child that a rank has forked, and has no part in the "
                   "group; use the group in the parent only");
}

}  // namespace unisono::pytorch
