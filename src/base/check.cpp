// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace unisono::base {
namespace {
thread_local int check_rank = -1;
}

void set_check_rank(int rank) { check_rank = rank; }

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "unisono: %s:%d: rank %d (pid %d): broken invariant: %s: %.*s\n", file, line,
               check_rank, static_cast<int>(getpid()), condition, static_cast<int>(message.size()),
               message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace unisono::base
