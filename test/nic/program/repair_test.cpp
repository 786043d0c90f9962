// SPDX-License-Identifier: BSD-3-Clause
// Questions of ranks that lost a packet, one by one through the kernel's trial run: the answers,
// the targets of forwarded questions, and that they are harmless.
#include <gtest/gtest.h>

#include <cstring>

#include "nic/harness/trial_device.hpp"

namespace unisono::nic::test::repair_test {
namespace {

constexpr std::uint32_t kSum = UNISONO_NIC_SUM_INT64;

class Repair : public TrialDevice {
 protected:
  // Own 100 7, children 1 10 and 2 20.
  static void complete(const unisono_nic_row& row, std::uint64_t sequence) {
    post(row, sequence, kSum, {100, 7});
    run(Entry::receive, frame_of(row, give(row, 0, sequence, kSum), {1, 10}));
    EXPECT_EQ(run(Entry::receive, frame_of(row, give(row, 1, sequence, kSum), {2, 20})).verdict,
              kSend);
  }

  // The result of an inner node, 1000 2000.
  static void end(const unisono_nic_row& row, std::uint64_t sequence) {
    unisono_packet packet = packet_of(UNISONO_NIC_RESULT, row.id, 0, sequence);
    packet.place = kSum;
    run(Entry::receive, frame_of(row, packet, {1000, 2000}));
    EXPECT_EQ(slot(row, sequence).done, sequence);
  }

  // A child that has given its vector asks.
  static Frame childs_question(const unisono_nic_row& row, std::uint32_t child,
                               std::uint64_t sequence) {
    unisono_packet packet = give(row, child, sequence, kSum);
    packet.kind = UNISONO_NIC_ASK_RESULT;
    return frame_of(row, packet, {1 + child, 10 + 10 * child});
  }

  // As the parent makes it: filled up to the length of the answer.
  static Frame parents_question(const unisono_nic_row& row, std::uint64_t sequence) {
    unisono_packet packet = packet_of(UNISONO_NIC_ASK_GIVE, row.id, 0, sequence);
    packet.target = row.rank;
    return frame_of(row, packet, {0, 0});
  }

  static Frame own_question(const unisono_nic_row& row, std::uint64_t sequence) {
    return from_process(row, UNISONO_NIC_ASK, sequence, 2);
  }

  // The question or answer that `row` sends. The vector is that in the frame, if it is filling.
  static Frame sent(const unisono_nic_row& row, std::uint8_t kind, int to, std::uint64_t sequence,
                    const Words& words) {
    unisono_packet packet = packet_of(kind, row.id, static_cast<int>(row.rank), sequence);
    packet.target = static_cast<std::uint32_t>(to);
    packet.position = row.own_slot;
    packet.place = kSum;
    return make_frame(row.own, host_address(to), packet, words, row.key);
  }
};

TEST_F(Repair, KeptSumAnswersTheParent) {
  const unisono_nic_row row = add(inner_row());
  complete(row, 0);
  for (int times = 0; times < 3; ++times) {
    forget_counts();
    const TrialRun seen = run(Entry::receive, parents_question(row, 0));
    EXPECT_EQ(seen.verdict, kSend);
    EXPECT_EQ(seen.frame, expected_up(row, 0, kSum, {103, 37}));
    expect_counted(UNISONO_NIC_ANSWERED);
  }
  end(row, 0);
  forget_counts();
  EXPECT_EQ(run(Entry::receive, parents_question(row, 0)).verdict, kDrop);
  expect_counted(UNISONO_NIC_STALE);
}

TEST_F(Repair, KeptResultAnswersTheChild) {
  const unisono_nic_row row = add(inner_row());
  complete(row, 0);
  end(row, 0);
  post(row, 1, kSum, {5, 6});  // goes on with the next meanwhile
  for (std::uint32_t child = 0; child < 2; ++child) {
    forget_counts();
    const TrialRun seen = run(Entry::receive, childs_question(row, child, 0));
    EXPECT_EQ(seen.verdict, kSend);
    const int rank = static_cast<int>(row.child_rank[child]);
    EXPECT_EQ(seen.frame, sent(row, UNISONO_NIC_RESULT, rank, 0, {1000, 2000}));
    expect_counted(UNISONO_NIC_ANSWERED);
  }
}

TEST_F(Repair, RootAnswersWithWhatItMulticast) {
  for (const std::uint32_t flags : {0U, UNISONO_NIC_RETURNS_VALUES}) {
    const unisono_nic_row row = add(root_row(flags));
    complete(row, 0);
    const Words words = flags == 0 ? Words{} : Words{103, 37};
    EXPECT_EQ(run(Entry::receive, childs_question(row, 0, 0)).frame,
              sent(row, UNISONO_NIC_RESULT, 3, 0, words));
  }
}

// The answer is taken like a result of the root's, once.
TEST_F(Repair, AnswerOfTheParentIsTaken) {
  unisono_nic_row tree = inner_row();
  tree.down_source = 8;  // the root multicasts, and is not the parent
  const unisono_nic_row row = add(tree);
  complete(row, 0);
  unisono_packet packet = packet_of(UNISONO_NIC_RESULT, row.id, 0, 0);
  packet.target = row.rank;
  packet.place = kSum;
  forget_counts();
  EXPECT_EQ(run(Entry::receive, frame_of(row, packet, {1000, 2000})).verdict, kDrop);
  expect_counted(UNISONO_NIC_CAME_DOWN);
  EXPECT_EQ(block(row, 0, 0).data[1], 2000U);
  EXPECT_EQ(run(Entry::receive, frame_of(row, packet, {1, 2})).verdict, kDrop);
  expect_counted(UNISONO_NIC_STALE);
  EXPECT_EQ(block(row, 0, 0).data[1], 2000U);
}

TEST_F(Repair, QuestionOfAChildIsItsContributionOnceMore) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {100, 7});
  forget_counts();
  EXPECT_EQ(run(Entry::receive, childs_question(row, 0, 0)).verdict, kDrop);
  expect_counted(UNISONO_NIC_TAKEN_IN);
  const TrialRun seen = run(Entry::receive, childs_question(row, 1, 0));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, expected_up(row, 0, kSum, {103, 37}));
  expect_counted(UNISONO_NIC_SENT_UP);
}

TEST_F(Repair, QuestionGoesOnToTheParent) {
  const unisono_nic_row row = add(inner_row());
  complete(row, 0);
  const std::string memory = memory_of(row);
  forget_counts();
  const TrialRun seen = run(Entry::receive, childs_question(row, 1, 0));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, sent(row, UNISONO_NIC_ASK_RESULT, 0, 0, {103, 37}));
  expect_counted(UNISONO_NIC_PASSED_ON);
  EXPECT_EQ(memory_of(row), memory);
}

TEST_F(Repair, QuestionGoesOnToTheChildThatLacks) {
  for (std::uint32_t missing = 0; missing < 2; ++missing) {
    const unisono_nic_row row = add(inner_row());
    post(row, 0, kSum, {100, 7});
    run(Entry::receive, frame_of(row, give(row, 1 - missing, 0, kSum), {1, 10}));
    const Frame expected =
        sent(row, UNISONO_NIC_ASK_GIVE, static_cast<int>(row.child_rank[missing]), 0, {100, 7});
    forget_counts();
    const TrialRun of_parent = run(Entry::receive, parents_question(row, 0));
    EXPECT_EQ(of_parent.verdict, kSend);
    EXPECT_EQ(of_parent.frame, expected);
    expect_counted(UNISONO_NIC_PASSED_ON);
    const TrialRun of_child = run(Entry::receive, childs_question(row, 1 - missing, 0));
    EXPECT_EQ(of_child.verdict, kSend);
    EXPECT_EQ(of_child.frame, expected);
    expect_counted(UNISONO_NIC_PASSED_ON);
  }
}

// The frame is passed on to the tc program, which sends clones to both children.
TEST_F(Repair, QuestionGoesOnToSeveralChildren) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {100, 7});
  forget_counts();
  const TrialRun passed = run(Entry::receive, parents_question(row, 0));
  EXPECT_EQ(passed.verdict, kPass);
  EXPECT_EQ(passed.frame, sent(row, UNISONO_NIC_ASK_GIVE, 1, 0, {100, 7}));
  const TrialRun spread = run(Entry::spread, passed.frame);
  EXPECT_EQ(spread.verdict, kTcDrop);
  EXPECT_EQ(spread.frame, sent(row, UNISONO_NIC_ASK_GIVE, 4, 0, {100, 7})) << "the last clone";
  expect_counted(UNISONO_NIC_PASSED_ON);
}

// Also children without a bit in the first arrival word: each missing one is asked, and no other.
TEST_F(Repair, QuestionGoesOnToOneOfManyChildren) {
  for (const std::uint32_t missing : {0U, 58U, 59U, 122U, 123U, 199U}) {
    const unisono_nic_row row = add(wide_row(200));
    post(row, 0, kSum, {100, 7});
    for (std::uint32_t child = 0; child < row.children; ++child) {
      if (child != missing) run(Entry::receive, frame_of(row, give(row, child, 0, kSum), {1, 10}));
    }
    const Frame expected =
        sent(row, UNISONO_NIC_ASK_GIVE, static_cast<int>(row.child_rank[missing]), 0, {100, 7});
    forget_counts();
    const TrialRun passed = run(Entry::receive, parents_question(row, 0));
    if (passed.verdict == kPass) {
      EXPECT_GE(missing, UNISONO_NIC_FIRST_CHILDREN);
      EXPECT_EQ(run(Entry::spread, passed.frame).frame, expected) << missing;
    } else {
      EXPECT_EQ(passed.verdict, kSend);
      EXPECT_EQ(passed.frame, expected) << missing;
    }
    expect_counted(UNISONO_NIC_PASSED_ON);
  }
}

TEST_F(Repair, WhatIsLateIsNotAskedFor) {
  const unisono_nic_row row = add(inner_row());
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  const std::string memory = memory_of(row);
  for (const Frame& question : {parents_question(row, 0), childs_question(row, 0, 0)}) {
    forget_counts();
    EXPECT_EQ(run(Entry::receive, question).verdict, kDrop);
    expect_counted(UNISONO_NIC_NOT_YET);
    EXPECT_EQ(memory_of(row), memory);
  }
}

TEST_F(Repair, OwnQuestionGoesWhereTheAnswerIs) {
  const unisono_nic_row row = add(inner_row());
  post(row, 0, kSum, {100, 7});
  forget_counts();
  const TrialRun down = run(Entry::leave, own_question(row, 0));
  EXPECT_EQ(down.verdict, kTcDrop) << "clones are sent";
  EXPECT_EQ(down.frame, sent(row, UNISONO_NIC_ASK_GIVE, 4, 0, {100, 7}));
  expect_counted(UNISONO_NIC_ASKED);
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  forget_counts();
  const TrialRun up = run(Entry::leave, own_question(row, 0));
  EXPECT_EQ(up.verdict, kTcNext);
  EXPECT_EQ(up.frame, sent(row, UNISONO_NIC_ASK_RESULT, 0, 0, {103, 37}));
  expect_counted(UNISONO_NIC_ASKED);
  end(row, 0);
  forget_counts();
  EXPECT_EQ(run(Entry::leave, own_question(row, 0)).verdict, kTcDrop);
  expect_counted(UNISONO_NIC_NOT_YET);
  EXPECT_EQ(run(Entry::leave, own_question(row, 1)).verdict, kTcDrop);
  expect_counted(UNISONO_NIC_STRAY_DOORBELL);
}

// No rank that may ask can lack it then; a delayed question gets no answer.
TEST_F(Repair, WhatIsGoneIsNotAnswered) {
  const unisono_nic_row row = add(inner_row());
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) {
    complete(row, sequence);
    end(row, sequence);
  }
  post(row, 2, kSum, {5, 6});
  for (const Frame& question : {parents_question(row, 0), childs_question(row, 0, 0)}) {
    const std::string memory = memory_of(row);
    forget_counts();
    EXPECT_EQ(run(Entry::receive, question).verdict, kDrop);
    expect_counted(UNISONO_NIC_STALE);
    EXPECT_EQ(memory_of(row), memory);
  }
  complete(row, 2);
  forget_counts();
  EXPECT_EQ(run(Entry::receive, childs_question(row, 0, 0)).verdict, kDrop);
  expect_counted(UNISONO_NIC_STALE);
}

// As if its process had been stopped between its contribution and its doorbell packet.
TEST_F(Repair, AQuestionDoesWhatTheDoorbellWouldHaveDone) {
  const unisono_nic_row row = add(inner_row());
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  post(row, 0, kSum, {100, 7});
  forget_counts();
  const TrialRun seen = run(Entry::receive, parents_question(row, 0));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, expected_up(row, 0, kSum, {103, 37}));
  expect_counted(UNISONO_NIC_SENT_UP);
}

// The root asks all at once whether they have given.
Frame query_of_root(const unisono_nic_row& row, std::uint64_t sequence) {
  unisono_packet packet = packet_of(UNISONO_NIC_QUERY, row.id, 0, sequence);
  packet.place = UNISONO_NIC_NOTHING;
  packet.position = 0;
  return make_frame(host_address(0), row.down, packet, {}, row.key);
}

unisono_nic_row leaf_row() {
  unisono_nic_row row = inner_row(0);
  row.children = 0;
  return row;
}

TEST_F(Repair, QueryIsAnsweredOnceWithoutTheProcess) {
  const unisono_nic_row row = add(leaf_row());
  post(row, 0, UNISONO_NIC_NOTHING, {});
  forget_counts();
  const TrialRun seen = run(Entry::receive, query_of_root(row, 0));
  EXPECT_EQ(seen.verdict, kSend);
  EXPECT_EQ(seen.frame, expected_up(row, 0, UNISONO_NIC_NOTHING, {}));
  expect_counted(UNISONO_NIC_SENT_UP);
  EXPECT_EQ(run(Entry::receive, query_of_root(row, 0)).verdict, kDrop);
  expect_counted(UNISONO_NIC_STALE);
}

TEST_F(Repair, QueryStaysUntilTheProcessComes) {
  const unisono_nic_row row = add(leaf_row());
  EXPECT_NE(slot(row, 0).queried, 0U);
  EXPECT_EQ(run(Entry::receive, query_of_root(row, 0)).verdict, kDrop);
  expect_counted(UNISONO_NIC_NOT_YET);
  EXPECT_EQ(slot(row, 0).queried, 0U);
}

TEST_F(Repair, RootSendsTheQueryToAll) {
  const unisono_nic_row row = add(root_row(0));
  const Frame asks = from_process(row, UNISONO_NIC_QUERY, 0);
  forget_counts();
  EXPECT_EQ(run(Entry::leave, asks).verdict, kTcDrop) << "it has not given itself";
  expect_counted(UNISONO_NIC_STRAY_DOORBELL);
  post(row, 0, UNISONO_NIC_NOTHING, {});
  const TrialRun seen = run(Entry::leave, asks);
  EXPECT_EQ(seen.verdict, kTcNext);
  EXPECT_EQ(seen.frame, query_of_root(row, 0));
  expect_counted(UNISONO_NIC_QUERIED);
}

TEST_F(Repair, ARootWithoutAMulticastAddressAsksNobody) {
  unisono_nic_row asked = root_row(0);
  asked.down = {};
  asked.forwards = 1;
  asked.forward[0] = host_address(1);
  const unisono_nic_row row = add(asked);
  post(row, 0, UNISONO_NIC_NOTHING, {});
  forget_counts();
  EXPECT_EQ(run(Entry::leave, from_process(row, UNISONO_NIC_QUERY, 0)).verdict, kTcDrop);
  expect_counted(UNISONO_NIC_STRAY_DOORBELL);
}

// No answer is longer than its question: a forged address gains nothing, and frames need not grow.
TEST_F(Repair, AnswersAreNoLongerThanQuestions) {
  const unisono_nic_row row = add(inner_row());
  complete(row, 0);
  const Frame question = parents_question(row, 0);
  EXPECT_EQ(run(Entry::receive, question).frame.size(), question.size());
  end(row, 0);
  EXPECT_EQ(run(Entry::receive, childs_question(row, 0, 0)).frame.size(), question.size());
}

}  // namespace
}  // namespace unisono::nic::test::repair_test
