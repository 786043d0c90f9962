// SPDX-License-Identifier: BSD-3-Clause
// ranks, losses and events of a job of one host.
#include "job/ranks.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "unit/job/tables.hpp"

namespace unisono::job::test::ranks_test {
namespace {

TEST(Ranks, EnterAndLeaveForAllToSee) {
  Tables tables(3);
  Parts first(tables, 0);
  Parts second(tables, 1);
  EXPECT_EQ(first.ranks.absent(), "ranks 0, 1, 2");
  first.ranks.enter();
  second.ranks.enter();
  EXPECT_EQ(first.ranks.absent(), "rank 2");
  EXPECT_EQ(second.ranks.state(0), RankState::present);
  first.ranks.leave();
  EXPECT_EQ(second.ranks.state(0), RankState::left);
  EXPECT_TRUE(second.ranks.has_living(0));
  EXPECT_TRUE(first.ranks.is_first_here());
  EXPECT_FALSE(second.ranks.is_first_here());
}

TEST(Losses, EachRankIsLostOnceAndTheFirstIsKept) {
  Tables tables(4);
  Parts own(tables, 0);
  Parts other(tables, 1);
  for (Parts* part : {&own, &other}) part->ranks.enter();
  EXPECT_FALSE(own.losses.first());
  EXPECT_TRUE(own.losses.mark_gone(2, RankState::dead));  // absent ranks can die, too
  EXPECT_TRUE(other.losses.mark_gone(1, RankState::silent));
  EXPECT_FALSE(own.losses.mark_gone(2, RankState::silent)) << "known";
  EXPECT_EQ(other.ranks.state(2), RankState::dead);
  EXPECT_EQ(own.losses.first(), (Losses::Loss{2, RankState::dead}));
  EXPECT_EQ(other.losses.first(), (Losses::Loss{2, RankState::dead}));
  EXPECT_TRUE(own.ranks.is_lost(1));
}

TEST(Losses, OfThreadsThatFindLossesAtOnceOneReports) {
  constexpr int kRanks = 5;
  for (int round = 0; round < 200; ++round) {
    Tables tables(kRanks);
    Parts own(tables, 0);
    own.ranks.enter();
    std::vector<std::thread> finders;
    std::barrier together(kRanks - 1);
    for (int rank = 1; rank < kRanks; ++rank) {
      finders.emplace_back([&, rank] {
        const std::string why(static_cast<std::size_t>(40 * rank), static_cast<char>('a' + rank));
        together.arrive_and_wait();
        EXPECT_TRUE(own.losses.mark_gone(rank, RankState::dead, why));
      });
    }
    for (std::thread& finder : finders) finder.join();
    const RankHeader& entry = tables.entries()[0];
    const auto reported =
        static_cast<int>(static_cast<std::uint32_t>(entry.reports_loss.load())) - 1;
    ASSERT_GE(reported, 1);
    ASSERT_LT(reported, kRanks);
    const std::string text = entry.report.text;
    const std::string why(static_cast<std::size_t>(40 * reported),
                          static_cast<char>('a' + reported));
    EXPECT_NE(text.find(why), std::string::npos) << text;
    for (int rank = 1; rank < kRanks; ++rank) {
      if (rank != reported) {
        EXPECT_EQ(text.find(std::string(10, static_cast<char>('a' + rank))), std::string::npos)
            << text;
      }
    }
  }
}

TEST(Losses, ARankThatHasLeftIsNotLost) {
  Tables tables(2);
  Parts own(tables, 0);
  Parts other(tables, 1);
  other.ranks.enter();
  other.ranks.leave();
  EXPECT_FALSE(own.losses.mark_gone(1, RankState::dead));
  EXPECT_EQ(own.ranks.state(1), RankState::left);
  EXPECT_FALSE(own.losses.first());
}

TEST(Losses, BeforeThereAreTablesALossIsKept) {
  Tables tables(2);
  Ranks ranks(tables.info(0));
  wait::Doorbells doorbells(tables.header().sleepers, nullptr);
  Events events(tables.header(), doorbells, 0);
  Losses losses(ranks, tables.header(), events, nullptr);
  EXPECT_FALSE(ranks.has_tables());
  EXPECT_TRUE(losses.mark_gone(1, RankState::dead));
  EXPECT_EQ(losses.first(), (Losses::Loss{1, RankState::dead}));
}

TEST(Events, AreSeenByAllRanksOfTheHost) {
  Tables tables(2);
  Parts own(tables, 0);
  Parts other(tables, 1);
  const std::uint32_t before = other.events.count();
  own.events.raise();
  EXPECT_NE(other.events.count(), before);
}

}  // namespace
}  // namespace unisono::job::test::ranks_test
