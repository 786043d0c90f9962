// SPDX-License-Identifier: BSD-3-Clause
// For front ends: a call that a rank refuses itself, and waits that the application interrupts.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {
namespace {

TEST(FrontEnd, ARefusedCallIsAnErrorOnEveryRank) {
  run_threads(3, [](ThreadRank& self) {
    if (self.rank == 1) {
      EXPECT_TRUE(failed(unisono_refuse(self.world, "allreduce: send is no array"),
                         UNISONO_ERROR_ARGUMENT, {"rank 1", "send is no array"}));
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_ARGUMENT, {"no array"}));
    } else {
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_PEER_ARGUMENT,
                         {"rank 1", "send is no array"}));
    }
    self.finalize();
  });
}

TEST(FrontEnd, ARefusalNeedsNoReason) {
  run_threads(1, [](ThreadRank& self) {
    EXPECT_TRUE(
        failed(unisono_refuse(self.world, nullptr), UNISONO_ERROR_ARGUMENT, {"no reason given"}));
    self.finalize();
    EXPECT_TRUE(failed(unisono_refuse(self.world, "late"), UNISONO_ERROR_STATE, {"refuse"}));
    EXPECT_TRUE(failed(unisono_set_interrupt(self.world, nullptr, nullptr), UNISONO_ERROR_STATE,
                       {"set_interrupt"}));
  });
}

int count_and_say(void* user) {
  auto& left = *static_cast<std::atomic<int>*>(user);
  return left.fetch_sub(1) <= 1 ? 1 : 0;
}

TEST(FrontEnd, AnInterruptEndsAWaitForAllAndNamesTheRank) {
  std::atomic<int> left = 3;  // answers, of which the last is yes
  run_threads(2, [&left](ThreadRank& self) {
    if (self.rank == 0) {
      ASSERT_TRUE(succeeded(unisono_set_interrupt(self.world, &count_and_say, &left)));
      EXPECT_TRUE(
          failed(unisono_barrier(self.world), UNISONO_ERROR_CANCELLED, {"rank 0", "interrupted"}));
      EXPECT_EQ(left.load(), 0);
    } else {
      while (left.load() > 0) sched_yield();
      // The first may have all that it needs from rank 0.
      const int first = unisono_barrier(self.world);
      EXPECT_TRUE(failed(first == UNISONO_OK ? unisono_barrier(self.world) : first,
                         UNISONO_ERROR_CANCELLED, {"rank 0", "interrupted"}));
    }
    self.finalize();
  });
}

TEST(FrontEnd, NobodyIsAskedOnceTheInterruptIsTakenBack) {
  std::atomic<int> left = 1;
  run_threads(2, [&left](ThreadRank& self) {
    ASSERT_TRUE(succeeded(unisono_set_interrupt(self.world, &count_and_say, &left)));
    ASSERT_TRUE(succeeded(unisono_set_interrupt(self.world, nullptr, nullptr)));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    EXPECT_EQ(left.load(), 1);
  });
}

}  // namespace
}  // namespace unisono::harness
