// SPDX-License-Identifier: BSD-3-Clause
// Circulant graphs: the skips, and the rounds of the broadcast for every P.
#include "algorithm/pattern/circulant.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace unisono::algorithm::pattern::circulant_test {
namespace {

TEST(Circulant, SkipsHalveRoundedUp) {
  for (int ranks = 1; ranks <= 200; ++ranks) {
    const CirculantSkips skips(ranks);
    ASSERT_EQ(skips.at(skips.rounds()), ranks);
    ASSERT_EQ(skips.at(0), 1);
    for (int k = 0; k < skips.rounds(); ++k) {
      EXPECT_EQ(skips.at(k), (skips.at(k + 1) + 1) / 2) << ranks << " ranks, skip " << k;
    }
  }
}

// The rounds of one rank are as Träff proves.
void expect_sound(const CirculantBroadcast& rounds, int blocks, int rank) {
  const std::vector<int> received = rounds.received(rank), sent = rounds.sent(rank);
  ASSERT_EQ(received.size(), static_cast<std::size_t>(rounds.rounds()));
  std::vector<bool> has(static_cast<std::size_t>(blocks), rank == 0);
  int got = 0;
  for (std::size_t i = 0; i < received.size(); ++i) {
    if (sent[i] >= 0) {
      ASSERT_TRUE(has[static_cast<std::size_t>(sent[i])]) << "round " << i;
    }
    if (received[i] < 0) continue;
    ASSERT_LT(received[i], blocks);
    ASSERT_FALSE(has[static_cast<std::size_t>(received[i])]) << "round " << i;
    has[static_cast<std::size_t>(received[i])] = true;
    ++got;
  }
  ASSERT_EQ(got, rank == 0 ? 0 : blocks);
}

TEST(Circulant, EveryRankGetsEveryBlockOnceAndBeforeItSendsIt) {
  for (int ranks = 2; ranks <= 130; ++ranks) {
    for (const int blocks : {1, 2, 3, 7, 8, 20}) {
      const CirculantBroadcast rounds(ranks, blocks);
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << blocks << " blocks, " << rank);
        ASSERT_NO_FATAL_FAILURE(expect_sound(rounds, blocks, rank));
      }
    }
  }
}

// In whatever order, and with whatever was asked before.
TEST(CirculantTurns, ThatAreKnownAreTheSame) {
  CirculantTurns turns;
  for (const int ranks : {2, 3, 16, 33, 64, 130, 33, 16}) {
    for (const int blocks : {1, 2, 8, 20}) {
      const CirculantBroadcast rounds(ranks, blocks);
      for (int rank = ranks - 1; rank >= 0; --rank) {
        const std::vector<int> received = rounds.received(rank), sent = rounds.sent(rank);
        const CirculantTurns::Use use(turns);
        ASSERT_EQ(rounds.received(rank), received) << ranks << ", " << blocks << ", " << rank;
        ASSERT_EQ(rounds.sent(rank), sent) << ranks << ", " << blocks << ", " << rank;
        std::vector<int> own;
        for (int times = 0; times < 2; ++times) {
          EXPECT_TRUE(std::ranges::equal(rounds.received(rank, own), received));
          EXPECT_TRUE(std::ranges::equal(rounds.sent(rank, own), sent));
        }
        EXPECT_EQ(own.empty(), ranks <= CirculantTurns::kMostRanksOfLists);
      }
    }
  }
}

TEST(CirculantTurns, AreFoundOnceWhileTheyAreUsed) {
  CirculantTurns turns;
  int found = 0;
  const auto find = [&found] {
    ++found;
    return CirculantTurns::Turn{1, 2};
  };
  CirculantTurns::of(5, 3, find);
  EXPECT_EQ(found, 1) << "nobody keeps it";
  {
    const CirculantTurns::Use use(turns);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(CirculantTurns::of(5, 3, find)[1], 2);
    EXPECT_EQ(found, 2);
    CirculantTurns::of(6, 3, find);
    EXPECT_EQ(found, 3) << "of another number of ranks";
  }
  CirculantTurns::of(5, 3, find);
  EXPECT_EQ(found, 4) << "not used any more";
}

TEST(Circulant, ManyRanks) {
  for (const int ranks : {1'000, 4'097, 65'535, 1'048'577}) {
    const CirculantBroadcast rounds(ranks, 5);
    for (int rank = 0; rank < ranks; rank += 1 + ranks / 50) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << rank);
      ASSERT_NO_FATAL_FAILURE(expect_sound(rounds, 5, rank));
    }
  }
}

// The example of the paper: 17 ranks, 5 rounds a turn.
TEST(Circulant, FirstTurnOf17Ranks) {
  const CirculantBroadcast rounds(17, 1);
  ASSERT_EQ(rounds.rounds(), 5);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(rounds.skip(i), (std::array{1, 2, 3, 5, 9})[static_cast<std::size_t>(i)]);
  EXPECT_EQ(rounds.received(4), (std::vector{-1, -1, 0, -1, -1}));
  EXPECT_EQ(rounds.received(16), (std::vector{-1, -1, -1, -1, 0}));
}

}  // namespace
}  // namespace unisono::algorithm::pattern::circulant_test
