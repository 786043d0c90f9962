// SPDX-License-Identifier: BSD-3-Clause
// Costs of schedules that are small enough to count by hand. Those of the algorithms are compared
// with their formulas in test/unit/algorithm/formula_test.cpp.
#include "schedule/cost.hpp"

#include <gtest/gtest.h>

#include "schedule/text.hpp"

namespace unisono::schedule::cost_test {
namespace {

Cost cost_of(std::string_view text) {
  const auto set = parse(text);
  EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message);
  return set.ok() ? cost(*set) : Cost{-1, -1};
}

// Rank 0 tells 1 on its own host and 2 on another, which tells 1.
TEST(Cost, BetweenHostsAMulticastIsSentOnceAndOtherMessagesAreNotSteps) {
  const std::string text =
      "schedule broadcast ranks 3 rank 0 count 4 root 0 hosts 0 0 1\n"
      "op 0 multicast input[0:4] to 1 slot 0, 2 slot 0\n"
      "schedule broadcast ranks 3 rank 1 count 4 root 0 hosts 0 0 1\n"
      "slot 0 from 0 count 4\nslot 1 from 2 count 2\n"
      "op 0 wait slot 0\nop 1 wait slot 1\n"
      "schedule broadcast ranks 3 rank 2 count 4 root 0 hosts 0 0 1\n"
      "slot 0 from 0 count 4\n"
      "op 0 wait slot 0\nop 1 send slot 0[0:2] to 1 slot 1 after 0\n";
  const auto set = parse(text);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(cost_between_hosts(*set),
            (CostBetweenHosts{.steps = 2, .messages = 2, .sends = 2, .elements = 6}));
}

// That it is right for every algorithm whose ranks are alike: test/unit/select/candidates_test.cpp.
TEST(Cost, OfRanksThatAreAlikeIsThatOfOne) {
  const std::string exchange =
      "slot 0 from {1} count 4\n"
      "op 0 send input[0:4] to {1} slot 0\nop 1 wait slot 0\n"
      "op 2 copy output[0:4] = slot 0[0:4] after 1\n";
  std::string text;
  for (const char* const pair : {"01", "10"}) {
    std::string one = exchange;
    for (auto at = one.find("{1}"); at != one.npos; at = one.find("{1}"))
      one.replace(at, 3, {pair[1]});
    text += std::string("schedule broadcast ranks 2 rank ") + pair[0] + " count 4 root 0\n" + one;
  }
  const auto set = parse(text);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(cost_of_alike(set->front()), cost(*set));
  EXPECT_EQ(cost_of_alike(set->front()), (Cost{1, 4}));
}

TEST(Cost, OneRankAloneSendsNothing) {
  EXPECT_EQ(cost_of("schedule allreduce ranks 1 rank 0 count 3\n"
                    "op 0 copy output[0:3] = input[0:3]\n"),
            (Cost{0, 0}));
}

// The first rank waits for one that comes after it in the set.
TEST(Cost, AChainIsAsLongAsItHasMessages) {
  EXPECT_EQ(cost_of("schedule broadcast ranks 3 rank 0 count 5 root 2\n"
                    "slot 0 from 1 count 5\n"
                    "op 0 wait slot 0\n"
                    "op 1 copy output[0:5] = slot 0[0:5] after 0\n"
                    "schedule broadcast ranks 3 rank 1 count 5 root 2\n"
                    "slot 0 from 2 count 5\n"
                    "op 0 wait slot 0\n"
                    "op 1 send slot 0[0:5] to 0 slot 0 after 0\n"
                    "op 2 copy output[0:5] = slot 0[0:5] after 0\n"
                    "schedule broadcast ranks 3 rank 2 count 5 root 2\n"
                    "op 0 send input[0:5] to 1 slot 0\n"),
            (Cost{2, 5}));
}

// Rank 0's second message need not wait for the answer to the first one.
TEST(Cost, WhatIsNoPredecessorDoesNotLengthenThePath) {
  const std::string head =
      "schedule barrier ranks 2 rank 0 count 0\nslot 0 from 1 count 0\n"
      "op 0 send input[0:0] to 1 slot 0\nop 1 wait slot 0\n";
  const std::string peer =
      "schedule barrier ranks 2 rank 1 count 0\nslot 0 from 0 count 0\n"
      "slot 1 from 0 count 0\nop 0 wait slot 0\n"
      "op 1 send input[0:0] to 0 slot 0 after 0\nop 2 wait slot 1\n";
  EXPECT_EQ(cost_of(head + "op 2 send input[0:0] to 1 slot 1\n" + peer), (Cost{2, 0}));
  EXPECT_EQ(cost_of(head + "op 2 send input[0:0] to 1 slot 1 after 1\n" + peer), (Cost{3, 0}));
}

TEST(Cost, AMulticastCountsOnceAndTheBusiestRankCounts) {
  EXPECT_EQ(cost_of("schedule broadcast ranks 3 rank 0 count 4 root 0\n"
                    "op 0 multicast input[0:4] to 1 slot 0, 2 slot 0\n"
                    "schedule broadcast ranks 3 rank 1 count 4 root 0\n"
                    "slot 0 from 0 count 4\n"
                    "op 0 wait slot 0\n"
                    "op 1 copy output[0:4] = slot 0[0:4] after 0\n"
                    "schedule broadcast ranks 3 rank 2 count 4 root 0\n"
                    "slot 0 from 0 count 4\n"
                    "op 0 wait slot 0\n"
                    "op 1 copy output[0:4] = slot 0[0:4] after 0\n"),
            (Cost{1, 4}));
}

TEST(CostDeathTest, StopsAtSchedulesThatNeverEnd) {
  const auto set = parse(
      "schedule barrier ranks 2 rank 0 count 0\nslot 0 from 1 count 0\nop 0 wait slot 0\n"
      "schedule barrier ranks 2 rank 1 count 0\n");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_DEATH(static_cast<void>(cost(*set)), "deadlock");
}

TEST(Messages, StandByStepAndOnceForEachTarget) {
  const auto set = parse(
      "schedule broadcast ranks 3 rank 0 count 4 root 1\n"
      "slot 0 from 1 count 4\n"
      "op 0 wait slot 0\n"
      "op 1 send slot 0[0:4] to 2 slot 0 after 0\n"
      "op 2 copy output[0:4] = slot 0[0:4] after 0\n"
      "schedule broadcast ranks 3 rank 1 count 4 root 1\n"
      "op 0 multicast input[0:4] to 0 slot 0, 2 slot 1\n"
      "schedule broadcast ranks 3 rank 2 count 4 root 1\n"
      "slot 0 from 0 count 4\n"
      "slot 1 from 1 count 4\n"
      "op 0 wait slot 1\n"
      "op 1 copy output[0:4] = slot 1[0:4] after 0\n"
      "op 2 wait slot 0\n");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(messages(*set), (std::vector<Message>{{1, 0, 1, 4}, {1, 2, 1, 4}, {0, 2, 2, 4}}));
}

}  // namespace
}  // namespace unisono::schedule::cost_test
