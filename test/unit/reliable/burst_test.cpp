// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/burst.hpp"

#include <gtest/gtest.h>

namespace unisono::reliable::burst_test {
namespace {

constexpr std::int64_t kAloneNs = 5000;  // what a datagram takes that leaves alone
constexpr std::int64_t kCallNs = 1000;   // between two calls of a rank that does nothing else
constexpr std::int64_t kBurstNs = Burst::kMost * kAloneNs;

// A rank that only sends.
struct Sender {
  Burst burst;
  std::int64_t now_ns = 1'000'000'000;

  Burst::Next send(std::size_t bytes = 100, std::int64_t datagrams = 1) {
    now_ns += kCallNs;
    const Burst::Next next = burst.next(now_ns, bytes, datagrams);
    if (next == Burst::Next::begin) burst.note_begun(now_ns);
    if (next != Burst::Next::leave) return next;
    burst.end();
    now_ns += kAloneNs;
    burst.note_left(now_ns);
    return next;
  }
  // How many leave at once before one waits.
  std::int64_t count_before_burst() {
    std::int64_t sent = 0;
    while (send() == Burst::Next::leave) ++sent;
    return sent;
  }
  void look() {
    burst.end();
    burst.note_look(now_ns);
  }
};

TEST(Burst, BeginsAfterALongRow) {
  Sender sender;
  EXPECT_EQ(sender.count_before_burst(), Burst::kRow);
  EXPECT_EQ(sender.burst.longest_ns(), kBurstNs);
}

TEST(Burst, EndsWithAsManyAsTheKernelTakes) {
  Sender sender;
  sender.count_before_burst();
  for (int burst = 0; burst < 3; ++burst) {
    for (std::int64_t i = 2; i < Burst::kMost; ++i) {
      ASSERT_EQ(sender.send(), Burst::Next::gather) << i;
    }
    EXPECT_EQ(sender.send(), Burst::Next::leave);
    EXPECT_EQ(sender.send(), Burst::Next::begin);
  }
}

TEST(Burst, EndsWithSoManyBytes) {
  Sender sender;
  sender.count_before_burst();
  EXPECT_EQ(sender.send(Burst::kMostBytes - 101), Burst::Next::gather);
  EXPECT_EQ(sender.send(1), Burst::Next::leave);
}

TEST(Burst, MessagesOfSeveralDatagramsGatherToo) {
  constexpr std::int64_t kDatagrams = 4;
  Sender sender;
  for (std::int64_t sent = kDatagrams; sent <= Burst::kRow; sent += kDatagrams) {
    ASSERT_EQ(sender.send(1000, kDatagrams), Burst::Next::leave) << sent;
  }
  ASSERT_TRUE(sender.burst.may_gather());
  EXPECT_EQ(sender.send(1000, kDatagrams), Burst::Next::begin);
  for (std::int64_t sent = 2 * kDatagrams; sent <= Burst::kMost; sent += kDatagrams) {
    const bool is_full = sent == Burst::kMost;
    EXPECT_EQ(sender.send(1000, kDatagrams), is_full ? Burst::Next::leave : Burst::Next::gather)
        << sent;
  }
}

// One that would not fit into the kernel's message.
TEST(Burst, EndsBeforeTheNextMessageIsTooMany) {
  constexpr std::int64_t kDatagrams = Burst::kMost / 3 + 1;
  Sender sender;
  sender.count_before_burst();
  EXPECT_EQ(sender.send(1000, kDatagrams), Burst::Next::gather);
  EXPECT_EQ(sender.send(1000, kDatagrams), Burst::Next::leave);
}

TEST(Burst, NoneMayGatherSoonAfterALook) {
  Sender sender;
  sender.count_before_burst();
  EXPECT_TRUE(sender.burst.may_gather());
  sender.look();
  for (std::int64_t i = 0; i < Burst::kAlone; ++i) {
    EXPECT_FALSE(sender.burst.may_gather());
    sender.send();
  }
  EXPECT_TRUE(sender.burst.may_gather());
}

// As in single calls, where each waits for an answer.
TEST(Burst, TwoAfterALookLeaveAtOnce) {
  Sender sender;
  sender.count_before_burst();
  for (std::int64_t call = 0; call < 10 * Burst::kRow; ++call) {
    sender.look();
    for (std::int64_t i = 0; i < Burst::kAlone; ++i) {
      ASSERT_EQ(sender.send(), Burst::Next::leave);
    }
  }
  EXPECT_EQ(sender.count_before_burst(), Burst::kRun - Burst::kAlone - 1)
      << "the looks are no pause";
}

// As an alltoall of some ranks.
TEST(Burst, CallsOfAFewDatagramsEachHaveNone) {
  Sender sender;
  sender.count_before_burst();
  sender.look();
  sender.send();
  for (int call = 0; call < 100; ++call) {
    sender.look();
    for (std::int64_t i = 1; i < Burst::kRun; ++i) {
      ASSERT_EQ(sender.send(), Burst::Next::leave) << i;
    }
  }
}

TEST(Burst, TheTimerIsNoDelayOfTheNextDatagram) {
  Sender sender;
  sender.count_before_burst();
  sender.burst.note_begun(sender.now_ns += 10 * kAloneNs);
  EXPECT_EQ(sender.send(), Burst::Next::gather);
}

TEST(Burst, LeavesNoLaterThanItsDatagramsAlone) {
  Sender sender;
  sender.count_before_burst();
  EXPECT_EQ(sender.send(), Burst::Next::gather);
  sender.now_ns += 3 * kAloneNs;  // so long take three alone
  EXPECT_EQ(sender.send(), Burst::Next::leave);
  EXPECT_EQ(sender.count_before_burst(), Burst::kRow) << "such a rank does not only send";
}

TEST(Burst, APauseEndsTheRow) {
  Sender sender;
  for (std::int64_t i = 0; i < Burst::kRow; ++i) sender.send();
  sender.now_ns += kBurstNs;
  EXPECT_EQ(sender.count_before_burst(), Burst::kRow);
}

TEST(Burst, AWaitWithLooksIsNoPause) {
  Sender sender;
  for (std::int64_t i = 0; i < Burst::kRow; ++i) sender.send();
  for (int look = 0; look < 100; ++look) {
    sender.now_ns += kBurstNs / 2;
    sender.look();
  }
  EXPECT_EQ(sender.count_before_burst(), Burst::kAlone);
}

// A program that computes for longer than a send takes, again and again, never has two that wait.
TEST(Burst, ASlowRowHasNone) {
  Sender sender;
  std::int64_t gathered = 0;
  for (std::int64_t i = 0; i < 10 * Burst::kRow; ++i) {
    sender.now_ns += 2 * kAloneNs;
    gathered += sender.send() == Burst::Next::gather;
  }
  EXPECT_EQ(gathered, 0);
}

// The time of one alone is that of this row, not of one before it.
TEST(Burst, MeasuresInEachRow) {
  Sender sender;
  sender.count_before_burst();
  sender.look();
  sender.now_ns += 10 * kBurstNs;
  EXPECT_EQ(sender.burst.next(sender.now_ns, 100), Burst::Next::leave);
  sender.burst.end();
  sender.burst.note_left(sender.now_ns + 3 * kAloneNs);
  EXPECT_EQ(sender.burst.longest_ns(), 3 * kBurstNs);
}

}  // namespace
}  // namespace unisono::reliable::burst_test
