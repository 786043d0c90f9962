// SPDX-License-Identifier: BSD-3-Clause
// prove() on right schedules of every kind, and the words it finds for wrong ones.
#include "check/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "bases.hpp"

namespace unisono::check::prove_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

std::string edited(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  const std::size_t place = result.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place != std::string::npos) result.replace(place, from.size(), to);
  return result;
}

// The only violation of the text, as "rule: message".
std::string violation(std::string_view text) {
  const auto violations = prove(parsed(text));
  std::string all;
  for (const Violation& v : violations) {
    if (!all.empty()) all += '\n';
    all += std::string(rule_name(v.rule)) + ": " + v.message;
  }
  return all;
}

TEST(Prove, AcceptsEveryHandWrittenSchedule) {
  for (const Base& base : hand_written_bases()) {
    for (const Violation& v : prove(base.set)) ADD_FAILURE() << base.name << ": " << v.message;
  }
}

TEST(Prove, AcceptsTheTable) {
  for (const std::int64_t count : {0, 1, 5, 64}) {
    for (const Base& base : table_bases({1, 2, 3, 7, 8, 16, 33}, count)) {
      for (const Violation& v : prove(base.set)) {
        ADD_FAILURE() << base.name << ", count " << count << ": " << v.message;
      }
    }
  }
}

TEST(Prove, AcceptsUnequalBlocks) {
  for (const Base& base : unequal_bases({1, 2, 3, 7, 8, 16, 33})) {
    for (const Violation& v : prove(base.set)) ADD_FAILURE() << base.name << ": " << v.message;
  }
}

TEST(Prove, AcceptsWhatEachRankKnowsOfUnequalBlocks) {
  for (const Base& base : local_bases({1, 2, 3, 7, 8})) {
    for (const Violation& v : prove(base.set)) ADD_FAILURE() << base.name << ": " << v.message;
  }
}

TEST(Prove, CostDoesNotDependOnTheCount) {
  for (const Base& base : table_bases({5}, std::int64_t{1} << 40)) {
    EXPECT_TRUE(prove(base.set).empty()) << base.name;
  }
}

TEST(Prove, OneRankNeedsNothingButItsOwnCopy) {
  EXPECT_EQ(violation("schedule barrier ranks 1 rank 0 count 0"), "");
  EXPECT_EQ(violation("schedule broadcast ranks 1 rank 0 count 3 root 0"), "");
  EXPECT_EQ(violation("schedule allreduce ranks 1 rank 0 count 3\n"
                      "op 0 copy output[0:3] = input[0:3]"),
            "");
  EXPECT_EQ(violation("schedule allreduce ranks 1 rank 0 count 3"),
            "missing: rank 0: output[0:3] is never written");
}

TEST(Prove, OfNothingThereIsNothingToShow) {
  EXPECT_EQ(violation("schedule allgather ranks 2 rank 0 count 0\n"
                      "schedule allgather ranks 2 rank 1 count 0"),
            "");
  EXPECT_EQ(violation(""), "malformed: the set holds no schedule");
}

TEST(Prove, NamesARankThatDoesNotSend) {
  EXPECT_EQ(violation(edited(kReduceSerial, "op 0 send input[0:4] to 2 slot 1", "")),
            "never_filled: rank 2, op 1 (wait slot 1): slot 1 is never filled: rank 1 does not "
            "send to it");
}

TEST(Prove, NamesASlotThatIsNotWaitedFor) {
  EXPECT_EQ(violation(edited(kAllgatherRing, "op 5 wait slot 1", "op 5 wait slot 0")),
            "never_waited: rank 0: slot 1 is filled by rank 2 but never waited for, so that a "
            "later operation could not reuse it");
}

TEST(Prove, NamesTheTwoOpsOfARace) {
  // Rank 0's partial result is still on its way to rank 2 when the final one overwrites it.
  EXPECT_EQ(violation(edited(kAllreduceExchange, "slot 1[0:4] after 3 4", "slot 1[0:4] after 4")),
            "race: rank 0, op 5 (reduce output[0:4] = output[0:4] . slot 1[0:4]): reads "
            "output[0:4], which op 2 (reduce output[0:4] = input[0:4] . slot 0[0:4]) writes, and "
            "nothing says which comes first\n"
            "race: rank 0, op 5 (reduce output[0:4] = output[0:4] . slot 1[0:4]): writes "
            "output[0:4], which op 3 (send output[0:4] to 2 slot 1) reads, and nothing says which "
            "comes first");
}

TEST(Prove, NamesAReadBeforeItsWait) {
  EXPECT_EQ(violation(edited(kBroadcastChain, "to 0 slot 1 after 3", "to 0 slot 1")),
            "unwaited_read: rank 2, op 4 (send slot 1[0:2] to 0 slot 1): reads slot 1[0:2] without "
            "coming after a wait for slot 1");
}

TEST(Prove, FindsWhatIsWrongOnlyInPlace) {
  // Apart, sending the input and writing the output do not meet.
  EXPECT_EQ(violation(edited(kAllreduceExchange, "input[0:4] . slot 0[0:4] after 0 1",
                             "input[0:4] . slot 0[0:4] after 1")),
            "race: in place, rank 0, op 2 (reduce output[0:4] = input[0:4] . slot 0[0:4]): writes "
            "output[0:4], which op 0 (send input[0:4] to 1 slot 0) reads, and nothing says which "
            "comes first");
}

TEST(Prove, NamesMissingAndDoubledRanks) {
  EXPECT_EQ(
      violation(edited(kReduceSerial, "slot 0[0:4] . slot 1[0:4]", "slot 1[0:4] . slot 1[0:4]")),
      "missing: rank 2, op 3 (reduce output[0:4] = scratch[0:4] . input[0:4]): output[0:4] "
      "lacks rank 0\n"
      "doubled: rank 2, op 3 (reduce output[0:4] = scratch[0:4] . input[0:4]): output[0:4] "
      "holds rank 1 more than once");
}

TEST(Prove, NamesTheOrderThatIsNotThatOfTheRanks) {
  const std::string reversed =
      edited(kReduceSerial, "slot 0[0:4] . slot 1[0:4]", "slot 1[0:4] . slot 0[0:4]");
  EXPECT_EQ(violation(reversed),
            "out_of_order: rank 2, op 3 (reduce output[0:4] = scratch[0:4] . input[0:4]): "
            "output[0:4] joins the ranks in the order 1, 0, 2");
  std::string commutative = reversed;
  for (int rank = 0; rank < 3; ++rank) commutative = edited(commutative, " ordered", "");
  EXPECT_EQ(violation(commutative), "");
}

TEST(Prove, NamesWhatStandsInTheWrongPlace) {
  EXPECT_EQ(violation(edited(kBroadcastChain, "send input[2:4]", "send input[1:3]")),
            "misplaced: rank 0, op 3 (copy output[2:4] = slot 1[0:2]): output[2:4] holds elements "
            "1-2 of rank 1, where elements 2-3 of rank 1 should be\n"
            "misplaced: rank 2, op 5 (copy output[2:4] = slot 1[0:2]): output[2:4] holds elements "
            "1-2 of rank 1, where elements 2-3 of rank 1 should be");
}

TEST(Prove, NamesARankThatLeavesTheBarrierTooEarly) {
  EXPECT_EQ(violation(edited(kBarrierGather, "2 slot 0 after 0 1", "2 slot 0 after 0")),
            "missing: rank 1: may leave the barrier before rank 2 has entered it");
}

TEST(Prove, WalksTheCircleOfADeadlock) {
  EXPECT_EQ(violation("schedule barrier ranks 2 rank 0 count 0\n"
                      "slot 0 from 1 count 0\n"
                      "op 0 wait slot 0\n"
                      "op 1 send input[0:0] to 1 slot 0 after 0\n"
                      "schedule barrier ranks 2 rank 1 count 0\n"
                      "slot 0 from 0 count 0\n"
                      "op 0 wait slot 0\n"
                      "op 1 send input[0:0] to 0 slot 0 after 0\n"),
            "deadlock: rank 0, op 0 (wait slot 0): a circle: waits for rank 1, op 1 (send "
            "input[0:0] to 0 slot 0), which stands behind op 0 (wait slot 0) there, which waits "
            "for rank 0, op 1 (send input[0:0] to 1 slot 0), which stands behind op 0 (wait slot "
            "0) there");
}

TEST(Prove, NamesABlockInTheWrongPlace) {
  EXPECT_EQ(violation(edited(kScatterChain, "slot 0[2:3] after", "slot 0[0:1] after")),
            "misplaced: rank 1, op 2 (copy output[0:1] = slot 0[0:1]): output[0:1] holds element 0 "
            "of rank 2, where element 2 of rank 2 should be");
  EXPECT_EQ(violation(edited(kManyToManyDirect, "output[0:1] = slot 0[0:1] after 0",
                             "output[0:1] = slot 1[0:1] after 0")),
            "unwaited_read: rank 2, op 1 (copy output[0:1] = slot 1[0:1]): reads slot 1[0:1] "
            "without coming after a wait for slot 1");
  // The two blocks the wrong way round.
  EXPECT_EQ(violation("schedule gather ranks 2 rank 0 blocks 2 2 root 0\n"
                      "slot 0 from 1 count 2\n"
                      "op 0 copy output[2:4] = input[0:2]\n"
                      "op 1 wait slot 0\n"
                      "op 2 copy output[0:2] = slot 0[0:2] after 1\n"
                      "schedule gather ranks 2 rank 1 blocks 2 2 root 0\n"
                      "op 0 send input[0:2] to 0 slot 0\n"),
            "misplaced: rank 0, op 2 (copy output[0:2] = slot 0[0:2]): output[0:2] holds elements "
            "0-1 of rank 1, where elements 0-1 of rank 0 should be\n"
            "misplaced: rank 0, op 0 (copy output[2:4] = input[0:2]): output[2:4] holds elements "
            "0-1 of rank 0, where elements 0-1 of rank 1 should be");
}

TEST(Prove, NamesARankThatDoesNotBelongIntoAScan) {
  std::string text = edited(kScanChain, "op 1 copy output[0:2] = input[0:2] after 0",
                            "slot 0 from 1 count 2\n"
                            "op 1 wait slot 0\n"
                            "op 2 reduce output[0:2] = input[0:2] . slot 0[0:2] after 0 1");
  text = edited(text, "op 0 send input[0:2] to 1 slot 0\nslot 0 from 1 count 2",
                "slot 0 from 1 count 2\nop 0 send input[0:2] to 1 slot 0");
  text =
      edited(text, "op 0 wait slot 0\nop 1 reduce output[0:2] = slot 0[0:2] . input[0:2] after 0",
             "op 0 send input[0:2] to 0 slot 0\nop 1 wait slot 0\n"
             "op 2 reduce output[0:2] = slot 0[0:2] . input[0:2] after 0 1");
  text = edited(text, "op 2 send output[0:2] to 2 slot 0 after 1",
                "op 3 send output[0:2] to 2 slot 0 after 2");
  EXPECT_EQ(violation(text),
            "misplaced: rank 0, op 2 (reduce output[0:2] = input[0:2] . slot 0[0:2]): output[0:2] "
            "holds rank 1, beyond rank 0, the last that belongs there");
}

TEST(Prove, RankZeroOfAnExclusiveScanMayNotWrite) {
  EXPECT_EQ(
      violation(edited(kExscanChain, "op 0 send input[0:2] to 1 slot 0",
                       "op 0 send input[0:2] to 1 slot 0\nop 1 copy output[0:2] = input[0:2]")),
      "bounds: rank 0, op 1 (copy output[0:2] = input[0:2]): output[0:2] lies outside its 0 "
      "elements");
}

TEST(Prove, FindsAnOverlapOnlyInPlace) {
  const std::string direct =
      edited(kReduceScatterExchange, "reduce scratch[0:3] = slot 0[0:3] . input[1:4] after 1",
             "reduce output[0:3] = slot 0[0:3] . input[1:4] after 0 1");
  EXPECT_EQ(violation(edited(direct, "op 3 copy output[0:3] = scratch[0:3] after 2 0\n", "")),
            "overlap: in place, rank 1, op 2 (reduce output[0:3] = slot 0[0:3] . input[1:4]): "
            "output[1:4] overlaps its target output[0:3] without coinciding");
}

TEST(Prove, AnEmptySlotMayStayUnusedButNotHalfUsed) {
  EXPECT_EQ(violation(kGatherLinear), "");
  EXPECT_EQ(
      violation(edited(kGatherLinear,
                       "op 1 wait slot 1\nop 2 copy output[3:5] = slot 1[0:2] "
                       "after 1",
                       "op 1 wait slot 1\nop 2 copy output[3:5] = slot 1[0:2] after 1\n"
                       "op 3 wait slot 0")),
      "never_filled: rank 1, op 3 (wait slot 0): slot 0 is never filled: rank 0 does not send "
      "to it");
  EXPECT_EQ(violation(edited(kGatherLinear, "rank 0 blocks 0 3 2 root 1",
                             "rank 0 blocks 0 3 2 root 1\nop 0 send input[0:0] to 1 slot 0")),
            "never_waited: rank 1: slot 0 is filled by rank 0 but never waited for, so that a "
            "later operation could not reuse it");
}

TEST(Prove, BlocksThatDoNotFitAreMalformed) {
  auto set = parsed(kGatherLinear);
  for (auto& schedule : set) schedule.shape.count = 2;
  EXPECT_EQ(prove(set).front().message, "a count beside the counts of blocks: leave it at 0");
  for (auto& schedule : set) {
    schedule.shape.count = 0;
    schedule.shape.blocks = *schedule::Blocks::of_ranks({1, 2});
  }
  EXPECT_EQ(prove(set).front().message, "blocks for another number of ranks");
}

// Rank 1 echoes the input of rank 0, which overwrites its output only then.
constexpr std::string_view kEcho = R"(
schedule allgather ranks 2 rank 0 count 1
slot 0 from 1 count 1
slot 1 from 1 count 0
op 0 copy output[0:1] = input[0:1]
op 1 copy output[1:2] = input[0:1]
op 2 send output[1:2] to 1 slot 0 after 1
op 3 wait slot 0
op 4 wait slot 1
op 5 copy output[1:2] = slot 0[0:1] after 3 4

schedule allgather ranks 2 rank 1 count 1
slot 0 from 0 count 1
op 0 send input[0:1] to 0 slot 0
op 1 wait slot 0
op 2 send input[0:0] to 0 slot 1 after 1
op 3 copy output[0:1] = slot 0[0:1] after 1
op 4 copy output[1:2] = input[0:1]
)";

TEST(Prove, FollowsTheOrderThroughMessages) {
  EXPECT_EQ(violation(kEcho), "");
  const std::string no_echo = edited(kEcho, "to 0 slot 1 after 1", "to 0 slot 1");
  EXPECT_EQ(prove(parsed(no_echo)).front().rule, Rule::race);
}

TEST(Prove, AMulticastThatOneHasSeenMayStillBeOnItsWay) {
  const std::string multicast = edited(kEcho, "op 2 send output", "op 2 multicast output");
  const auto violations = prove(parsed(multicast));
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations.front().rule, Rule::race);
}

TEST(Prove, StopsAtTheLimit) {
  std::string text(kBarrierDissemination);
  for (int rank = 0; rank < 3; ++rank) text = edited(text, "op 0 send", "op 0 multicast");
  for (int rank = 0; rank < 3; ++rank) text = edited(text, "op 1 wait slot 0", "op 1 wait slot 1");
  EXPECT_EQ(prove(parsed(text)).size(), 3u);
  EXPECT_EQ(prove(parsed(text), 2).size(), 2u);
  EXPECT_EQ(prove(parsed(text), 0).size(), 1u);
}

TEST(Prove, OneRankAppliesTheOperatorWhereItHasTo) {
  const auto text = [](std::string_view how) {
    return std::string("schedule allreduce ranks 2 rank 0 count 1") + std::string(how) +
           "\nslot 0 from 1 count 1\n"
           "op 0 send input[0:1] to 1 slot 0\n"
           "op 1 wait slot 0\n"
           "op 2 reduce output[0:1] = input[0:1] . slot 0[0:1] after 0 1\n"
           "schedule allreduce ranks 2 rank 1 count 1" +
           std::string(how) +
           "\nslot 0 from 0 count 1\n"
           "op 0 send input[0:1] to 0 slot 0\n"
           "op 1 wait slot 0\n"
           "op 2 reduce output[0:1] = slot 0[0:1] . input[0:1] after 0 1\n";
  };
  EXPECT_EQ(violation(text("")), "");
  const std::string wrong = violation(text(" by_one"));
  EXPECT_NE(wrong.find("by_several: rank 1, op 2"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("rank 0 alone shall do"), std::string::npos) << wrong;
}

// Each step doubles the contributions of the output: 2^60 of them, if they were kept.
TEST(Prove, BearsContributionsWithoutEnd) {
  std::string text =
      "schedule allreduce ranks 1 rank 0 count 1\n"
      "op 0 copy output[0:1] = input[0:1]\n";
  for (int id = 1; id <= 60; ++id) {
    text += "op " + std::to_string(id) + " reduce output[0:1] = output[0:1] . output[0:1] after " +
            std::to_string(id - 1) + "\n";
  }
  EXPECT_EQ(prove(parsed(text)).front().rule, Rule::doubled);
}

TEST(Prove, EveryRuleHasItsName) {
  std::vector<std::string_view> names;
  for (int rule = 0; rule <= static_cast<int>(Rule::by_several); ++rule) {
    names.push_back(rule_name(static_cast<Rule>(rule)));
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(std::ranges::count(names, "unknown"), 0);
}

}  // namespace
}  // namespace unisono::check::prove_test
