// SPDX-License-Identifier: BSD-3-Clause
// A process that uses up its descriptors, but for so many. For tests, in a child.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace unisono::harness {

inline void leave_descriptors(int left) {
  constexpr int kMost = 64;
  const rlimit limit{.rlim_cur = kMost, .rlim_max = kMost};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  int last = 0;
  while (last >= 0 && last < kMost - left - 1) last = dup(STDERR_FILENO);
  ASSERT_GE(last, 0);
}

}  // namespace unisono::harness
