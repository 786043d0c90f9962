// SPDX-License-Identifier: BSD-3-Clause
// Operations that have to end although no rank calls the library: for jobs that have agents.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "harness/outcome.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// Waits until a value appears in memory that the library writes. False if it takes so long that it
// never will. It reads the operation's memory, which the thread sanitizer would rightly report.
__attribute__((no_sanitize("thread"))) inline bool appears(const volatile std::int64_t& word,
                                                           std::int64_t value) {
  const std::int64_t deadline_ns = base::now_ns() + 30 * base::kSecond;
  while (word != value) {
    if (base::now_ns() > deadline_ns) return false;
    sched_yield();
  }
  return true;
}

// A long operation after whose start its caller does not call the library for a while.
template <class Self>
void check_long_start(const Self& self) {
  std::vector<std::int64_t> values(100'000, self.rank);
  std::vector<std::int64_t> sums(values.size(), -1);
  unisono_request_t request = nullptr;
  ASSERT_TRUE(succeeded(unisono_allreduce_start(values.data(), sums.data(),
                                                static_cast<std::int64_t>(values.size()),
                                                UNISONO_INT64, UNISONO_SUM, self.world, &request)));
  const std::int64_t sum = self.ranks * (self.ranks - 1) / 2;
  EXPECT_TRUE(appears(sums.back(), sum)) << "rank " << self.rank;
  ASSERT_TRUE(succeeded(unisono_wait(&request)));
  for (const std::int64_t each : sums) ASSERT_EQ(each, sum);
}

// Three operations at once, a long one among them, on two communicators; all ranks look at their
// own memory only. `self` has rank, ranks and world.
template <class Self>
void check_unattended(const Self& self) {
  ASSERT_NO_FATAL_FAILURE(check_long_start(self));
  unisono_comm_t twin = nullptr;
  ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin)));
  for (int round = 1; round <= 5; ++round) {
    std::vector<std::int64_t> values(100'000, self.rank + round);
    std::vector<std::int64_t> sums(values.size(), -1);
    std::int64_t told = self.rank == 0 ? 100 + round : -1;
    std::vector<std::int64_t> all(static_cast<std::size_t>(self.ranks), -1);
    const std::int64_t own = self.rank;
    std::array<unisono_request_t, 3> requests{};
    ASSERT_TRUE(succeeded(unisono_allreduce_start(
        values.data(), sums.data(), static_cast<std::int64_t>(values.size()), UNISONO_INT64,
        UNISONO_SUM, self.world, &requests[0])));
    ASSERT_TRUE(succeeded(unisono_broadcast_start(&told, 1, UNISONO_INT64, 0, twin, &requests[1])));
    ASSERT_TRUE(succeeded(
        unisono_allgather_start(&own, all.data(), 1, UNISONO_INT64, self.world, &requests[2])));
    // A look that ends the short one leaves the long one on the same communicator to go on.
    int done = 0;
    while (done == 0) ASSERT_TRUE(succeeded(unisono_test(&requests[2], &done)));
    const std::int64_t sum = self.ranks * (self.ranks - 1) / 2 + self.ranks * round;
    EXPECT_TRUE(appears(sums.back(), sum)) << "rank " << self.rank << ", round " << round;
    EXPECT_TRUE(appears(told, 100 + round)) << "rank " << self.rank << ", round " << round;
    EXPECT_TRUE(appears(all.back(), self.ranks - 1)) << "rank " << self.rank;
    ASSERT_TRUE(succeeded(unisono_wait_all(requests.data(), 3)));
    for (const std::int64_t each : sums) ASSERT_EQ(each, sum);
  }
  ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
}

}  // namespace unisono::harness
