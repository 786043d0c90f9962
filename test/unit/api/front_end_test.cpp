// SPDX-License-Identifier: BSD-3-Clause
// For front ends: a call that a rank refuses itself, and waits that the application interrupts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/await.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::front_end_test {
namespace {

int failed_rank(unisono_comm_t comm) {
  int rank = -2;
  EXPECT_TRUE(succeeded(unisono_comm_failed_rank(comm, &rank)));
  return rank;
}

TEST(FrontEnd, ARefusedCallIsAnErrorOnEveryRank) {
  run_threads(3, [](ThreadRank& self) {
    EXPECT_EQ(failed_rank(self.world), -1);
    EXPECT_TRUE(failed(unisono_comm_failed_rank(self.world, nullptr), UNISONO_ERROR_ARGUMENT,
                       {"rank is NULL"}));
    if (self.rank == 1) {
      EXPECT_TRUE(failed(unisono_refuse(self.world, "allreduce: send is no array"),
                         UNISONO_ERROR_ARGUMENT, {"rank 1", "send is no array"}));
      EXPECT_EQ(failed_rank(self.world), 1);
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_ARGUMENT, {"no array"}));
    } else {
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_PEER_ARGUMENT,
                         {"rank 1", "send is no array"}));
      EXPECT_EQ(failed_rank(self.world), 1);
    }
    self.finalize();
  });
}

// Each thread speaks for itself: one of them waits as usual.
TEST(FrontEnd, RanksWaitInTheBackground) {
  run_threads(3, [](ThreadRank& self) {
    EXPECT_TRUE(succeeded(unisono_set_background_thread(self.rank == 1 ? 0 : 1)));
    for (int i = 0; i < 50; ++i) {
      std::int64_t sum = self.rank;
      EXPECT_TRUE(succeeded(
          unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
      EXPECT_EQ(sum, 3);
    }
    EXPECT_TRUE(succeeded(unisono_set_background_thread(0)));
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
    EXPECT_TRUE(failed(unisono_comm_failed_rank(self.world, nullptr), UNISONO_ERROR_STATE));
  });
}

TEST(FrontEnd, ACallOfAnotherLibraryHasToBeWhole) {
  unisono_profiled_call_t call{};
  EXPECT_TRUE(failed(unisono_profile_call(nullptr), UNISONO_ERROR_ARGUMENT, {"call is NULL"}));
  EXPECT_TRUE(failed(unisono_profile_call(&call), UNISONO_ERROR_ARGUMENT, {"size is not set"}));
  call.size = sizeof call;
  call.collective = "allreduce";
  call.library = "Some MPI";
  EXPECT_TRUE(failed(unisono_profile_call(&call), UNISONO_ERROR_ARGUMENT, {"reason is missing"}));
  call.reason = "";
  EXPECT_TRUE(failed(unisono_profile_call(&call), UNISONO_ERROR_ARGUMENT, {"reason is missing"}));
  call.reason = "one rank";
  EXPECT_TRUE(failed(unisono_profile_call(&call), UNISONO_ERROR_ARGUMENT, {"0 ranks"}));
  call.ranks = 1;
  call.ns = -1;
  EXPECT_TRUE(failed(unisono_profile_call(&call), UNISONO_ERROR_ARGUMENT, {"-1 ns"}));
  call.ns = 1;
  EXPECT_TRUE(succeeded(unisono_profile_call(&call)));  // also without a profile
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
      await([&left] { return left.load() <= 0; });
      // The first may have all that it needs from rank 0.
      const int first = unisono_barrier(self.world);
      EXPECT_TRUE(failed(first == UNISONO_OK ? unisono_barrier(self.world) : first,
                         UNISONO_ERROR_CANCELLED, {"rank 0", "interrupted"}));
    }
    EXPECT_EQ(failed_rank(self.world), 0);
    self.finalize();
  });
}

int count_and_say_late(void* user) { return count_and_say(user) == 0 ? 0 : UNISONO_INTERRUPT_LATE; }

TEST(FrontEnd, ALateWaitNamesTheRanksThatHaveNotCalled) {
  std::atomic<int> left = 3;  // answers, of which the last is yes
  std::atomic<bool> is_late = false;
  run_threads(3, [&](ThreadRank& self) {
    const std::vector<std::string> parts = {"rank 0", "allreduce", "deadline", "rank 1"};
    std::int32_t value = self.rank;
    std::int32_t sum = 0;
    const auto call = [&] {
      return unisono_allreduce(&value, &sum, 1, UNISONO_INT32, UNISONO_SUM, self.world);
    };
    if (self.rank == 0) {
      ASSERT_TRUE(succeeded(unisono_set_interrupt(self.world, &count_and_say_late, &left)));
    } else if (self.rank == 1) {
      await([&is_late] { return is_late.load(); });
    }
    // Rank 1 may have all that it needs from the others.
    const int first = call();
    is_late = true;  // of rank 0 or 2, so the text is written
    EXPECT_TRUE(failed(first == UNISONO_OK ? call() : first, UNISONO_ERROR_TIMEOUT, parts));
    self.finalize();
  });
}

// The others may be in a later part of a long call, which nobody else has reached.
TEST(FrontEnd, ALateWaitInALongCallNamesThoseThatHaveNotCalled) {
  std::atomic<int> left = 3;
  std::atomic<bool> is_late = false;
  run_threads(3, [&](ThreadRank& self) {
    std::vector<std::uint8_t> data(16 << 20);
    if (self.rank == 0) {
      ASSERT_TRUE(succeeded(unisono_set_interrupt(self.world, &count_and_say_late, &left)));
    } else if (self.rank == 1) {
      await([&is_late] { return is_late.load(); });
    }
    const auto count = static_cast<std::int64_t>(data.size());
    const auto call = [&] {
      return unisono_broadcast(data.data(), count, UNISONO_BYTE, 0, self.world);
    };
    const int first = call();
    is_late = true;  // of rank 0 or 2, so the text is written
    EXPECT_TRUE(failed(first == UNISONO_OK ? call() : first, UNISONO_ERROR_TIMEOUT,
                       {"deadline of rank 0"}));
    const std::string text = unisono_last_error();
    EXPECT_TRUE(text.ends_with(": not called by rank 1")) << text;
    self.finalize();
  });
}

// Rank 1 has not called it yet. Rank 0 calls it again afterwards, and both go on.
void interrupt_a_shrink(unisono_interrupt_t interrupt, int code, const std::string& end) {
  std::atomic<int> left = 3;  // answers, of which the last is yes
  std::atomic<bool> has_ended = false;
  run_threads(2, [&](ThreadRank& self) {
    unisono_comm_t all = nullptr;
    unisono_comm_t rest = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &all)));
    if (self.rank == 0) {
      ASSERT_TRUE(succeeded(unisono_set_interrupt(all, interrupt, &left)));
      EXPECT_TRUE(failed(unisono_shrink(all, &rest), code,
                         {"rank 0: shrink " + end, "it waits for rank 1"}));
      ASSERT_TRUE(succeeded(unisono_set_interrupt(all, nullptr, nullptr)));
      has_ended = true;
    }
    await([&] { return has_ended.load(); });
    ASSERT_TRUE(succeeded(unisono_shrink(all, &rest)));
    EXPECT_TRUE(succeeded(unisono_barrier(rest)));
    self.finalize();
  });
}

TEST(FrontEnd, AnInterruptEndsAShrinkWhichCanBeCalledAgain) {
  interrupt_a_shrink(&count_and_say, UNISONO_ERROR_CANCELLED, "was interrupted");
}

TEST(FrontEnd, ALateShrinkNamesTheRanksThatHaveNotCalled) {
  interrupt_a_shrink(&count_and_say_late, UNISONO_ERROR_TIMEOUT,
                     "was not complete at this rank's deadline");
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
}  // namespace unisono::harness::front_end_test
