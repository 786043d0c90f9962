// SPDX-License-Identifier: BSD-3-Clause
// Reliable multicast, packet by packet: who is asked for what is lost, what is passed up and on,
// and how the origin learns that everybody has everything.
#include "reliable/group/group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "reliable/group/repair_tree.hpp"
#include "unit/reliable/multicasters.hpp"

namespace unisono::reliable::group_test {
namespace {

using transport::VirtualDatagramOptions;

// Hosts of three ranks each, dealt out one after the other: the first ranks are those below
// `count`.
topology::HostMap in_threes(int count) {
  std::vector<int> hosts;
  for (int rank = 0; rank < 3 * count; ++rank) hosts.push_back(rank % count);
  return topology::HostMap::of_labels(hosts);
}

std::vector<int> first_ranks(const topology::HostMap& hosts) {
  return {hosts.firsts().begin(), hosts.firsts().end()};
}

// Each but the origin is the child of one other, its parent; those in `left` of nobody.
void expect_tree(const RepairTree& tree, const std::vector<int>& members, int origin,
                 const std::set<int>& left) {
  std::set<int> children;
  for (const int rank : members) {
    if (left.contains(rank) && rank != origin) continue;
    EXPECT_EQ(tree.children(origin, rank).empty(), tree.is_leaf(origin, rank));
    for (const int child : tree.children(origin, rank)) {
      EXPECT_TRUE(children.insert(child).second);
      EXPECT_EQ(tree.parent(origin, child), rank);
    }
  }
  for (const int rank : members) {
    EXPECT_EQ(children.contains(rank), rank != origin && !left.contains(rank)) << rank;
  }
}

TEST(RepairTree, EveryMemberButTheOriginIsOneChildOfItsParent) {
  for (const int arity : {1, 2, 4, 8}) {
    for (int size = 1; size <= 40; ++size) {
      const topology::HostMap hosts = in_threes(size);
      const std::vector<int> members = first_ranks(hosts);
      const RepairTree tree(hosts, arity);
      EXPECT_FALSE(tree.has(3 * size - 1));
      for (const int origin : {members.front(), members[members.size() / 2], members.back()}) {
        expect_tree(tree, members, origin, {});
        for (const int rank : members) {
          EXPECT_LE(tree.children(origin, rank).size(), static_cast<std::size_t>(arity));
        }
      }
    }
  }
}

TEST(RepairTree, WhoHasLeftIsPassedOver) {
  base::Prng prng(7);
  for (int size = 2; size <= 24; ++size) {
    const topology::HostMap hosts = in_threes(size);
    const std::vector<int> members = first_ranks(hosts);
    RepairTree tree(hosts, 2);
    std::set<int> left;
    for (int i = 0; i < size; ++i) {
      const int rank = members[prng.below(members.size())];
      tree.forget(rank, Departure::left);
      left.insert(rank);
      expect_tree(tree, members, members[prng.below(members.size())], left);
    }
  }
}

TEST(Group, WithoutLossAMulticastIsOnePacket) {
  Multicasters ranks(8, 2);
  const auto bytes = pattern(100);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ranks.put_to_all(3, bytes, kFlag, i);
    ranks.run_for(kDelayNs + 1);
    ASSERT_TRUE(ranks.all_have(3, i));
  }
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(ranks.counts(rank).nacks, 0U);
    if (rank == 3) continue;
    EXPECT_EQ(std::memcmp(ranks.region(rank), bytes.data(), 100), 0);
  }
  EXPECT_EQ(ranks.network().sent(), 100);
}

// Rank 5's parent from origin 0 with arity 2 is 2, and 2's is 0.
TEST(Group, TheParentRepairs) {
  Multicasters ranks(8, 2);
  ranks.network().lose_next(0, 5, 1);
  ranks.put_to_all(0, {}, kFlag, 1);
  ranks.put_to_all(0, {}, kFlag + 8, 1);
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.all_have(0, 1); }));
  EXPECT_EQ(ranks.counts(5).nacks, 1U);
  EXPECT_EQ(ranks.counts(2).repaired, 1U);
  EXPECT_EQ(ranks.counts(0).repaired, 0U) << "the origin hears nothing of it";
  EXPECT_EQ(ranks.network().sent(), 2 + 1 + 1 + 1) << "a request, the packet, and a sign of life";
}

// A repetition shows its origin's name only, and before anything was sent there is none.
TEST(Group, WhoIsAskedInVainIsNotTakenForSilent) {
  Multicasters ranks(8, 2);
  const auto wait = [&] { ranks.at(5).awaits_multicast(0); };
  ranks.run_until(
      900 * kMillisecond, [] { return false; }, wait);
  EXPECT_GE(ranks.counts(5).nacks, 5U);
  for (const int asked : {0, 2}) {
    for (const int rank : {2, 5}) EXPECT_LT(ranks.at(rank).silence_ns(asked), kMillisecond);
  }
}

TEST(Group, WhoseParentHasLeftAsksTheNextAbove) {
  Multicasters ranks(8, 2);
  ranks.network().kill(2);
  for (int rank = 0; rank < 8; ++rank) ranks.at(rank).forget(2);
  ranks.network().lose_next(0, 5, 1);
  ranks.put_to_all(0, {}, kFlag, 1);
  EXPECT_TRUE(ranks.run_until(
      10 * kMillisecond, [&] { return ranks.at(0).settle(); },
      [&] { ranks.at(5).awaits_multicast(0); }));
  EXPECT_EQ(ranks.word(5), 1U);
  EXPECT_EQ(ranks.counts(0).repaired, 1U);
}

TEST(Group, ARankIsNotSettledBeforeAllHaveItsMulticasts) {
  Multicasters ranks(4, 2);
  ranks.network().lose_next(0, 3, 1);
  ranks.put_to_all(0, {}, kFlag, 1);
  EXPECT_FALSE(ranks.at(0).is_settled());
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  EXPECT_TRUE(ranks.all_have(0, 1));
}

TEST(Group, AParentThatLacksItTooAsksItsOwn) {
  Multicasters ranks(8, 2);
  ranks.network().lose_next(0, 5, 1);
  ranks.network().lose_next(0, 2, 2);  // the parent does not even see a gap
  ranks.put_to_all(0, {}, kFlag, 1);
  ranks.put_to_all(0, {}, kFlag + 8, 1);
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.word(5) == 1; }));
  EXPECT_EQ(ranks.word(2), 1U);
  EXPECT_EQ(ranks.counts(2).passed_up, 1U);
  EXPECT_EQ(ranks.counts(2).repaired, 1U);
  EXPECT_GE(ranks.counts(0).repaired, 1U);
}

TEST(Group, WhoAwaitsAMulticastFindsTheLossOfTheLast) {
  Multicasters ranks(8, 2);
  for (int rank = 1; rank < 8; ++rank) ranks.network().lose_next(0, rank, 1);
  ranks.put_to_all(0, {}, kFlag, 1);
  ranks.run_for(20 * kMillisecond);
  EXPECT_FALSE(ranks.all_have(0, 1));
  EXPECT_TRUE(ranks.run_until(
      200 * kMillisecond, [&] { return ranks.all_have(0, 1); },
      [&] {
        for (int rank = 1; rank < 8; ++rank) {
          if (ranks.word(rank) != 1) ranks.at(rank).awaits_multicast(0);
        }
      }));
  // The origin repeats it for its two children; the rest goes down the tree.
  EXPECT_EQ(ranks.counts(0).repaired, 2U);
}

TEST(Group, TheOriginLearnsThatAllHaveAllByOneAnswerOfEachChild) {
  Multicasters ranks(15, 2);
  for (std::uint64_t i = 1; i <= 5; ++i) ranks.put_to_all(0, {}, kFlag, i);
  EXPECT_FALSE(ranks.at(0).settle());
  EXPECT_TRUE(ranks.run_until(10 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  EXPECT_EQ(ranks.counts(0).queries, 1U);
  for (int rank = 1; rank < 15; ++rank) EXPECT_EQ(ranks.counts(rank).answers, 1U);
  // 5 multicasts, the question, and an answer of each to its parent.
  EXPECT_EQ(ranks.network().sent(), 5 + 1 + 14);
}

TEST(Group, TheWorstAnswerWins) {
  Multicasters ranks(15, 2);
  ranks.network().lose_next(0, 11, 1);
  ranks.put_to_all(0, {}, kFlag, 1);
  ranks.run_for(kDelayNs + 1);
  EXPECT_FALSE(ranks.at(0).settle());
  ranks.run_for(3 * kDelayNs);
  EXPECT_FALSE(ranks.at(0).settle()) << "one of fifteen lacks it";
  EXPECT_EQ(ranks.word(11), 0U);
  EXPECT_TRUE(ranks.run_until(50 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  EXPECT_EQ(ranks.word(11), 1U);
  EXPECT_LE(ranks.counts(0).queries, 6U) << "asked at growing intervals";
}

TEST(Group, ADeadRankIsNeverTakenForOneThatHasAll) {
  Multicasters ranks(7, 2);
  ranks.network().kill(6);
  ranks.put_to_all(0, {}, kFlag, 1);
  EXPECT_FALSE(ranks.run_until(500 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  EXPECT_EQ(ranks.word(5), 1U);
  EXPECT_LT(ranks.counts(0).queries, 40U) << "the origin asks less and less often";
}

TEST(Group, MoreThanTheWindowWaitsAndArrives) {
  Multicasters ranks(5, 2);
  constexpr std::uint64_t kPuts = 1500;
  for (std::uint64_t i = 0; i < kPuts; ++i) ranks.put_to_all(0, {}, 8 * i, i + 1);
  EXPECT_GT(ranks.counts(0).waited, 0U);
  EXPECT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  for (int rank = 1; rank < 5; ++rank) {
    for (std::uint64_t i = 0; i < kPuts; ++i) ASSERT_EQ(ranks.word(rank, 8 * i), i + 1);
  }
  EXPECT_EQ(ranks.counts(0).packets, kPuts);
}

// ---- the network ceases to carry multicast -----------------------------------------------------

constexpr std::uint64_t kMany = 1500;  // packets: several windows

// Flags of their own; nobody waits for any of them.
void put_many(Multicasters& ranks, int from, std::uint64_t first = 1) {
  for (std::uint64_t i = first; i < first + kMany; ++i) {
    ranks.put_to_all(from, {}, 8 * (i - first), i);
  }
}
void expect_many(Multicasters& ranks, int from, std::uint64_t first = 1) {
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == from) continue;
    for (std::uint64_t i = first; i < first + kMany; ++i) {
      ASSERT_EQ(ranks.word(rank, 8 * (i - first)), i) << "rank " << rank;
    }
  }
}

TEST(Group, ASenderWhoseMulticastsNobodyHearsGetsOn) {
  Multicasters ranks(15, 2);
  put_many(ranks, 0);
  ASSERT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  ranks.network().stop_multicast();
  put_many(ranks, 0, kMany);
  EXPECT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  expect_many(ranks, 0, kMany);
}

// A message at a time, whose receivers wait for it; at first each of them asks for it.
TEST(Group, WhoHearsNoMulticastAnyMoreGetsAllByUnicastWithoutAsking) {
  Multicasters ranks(15, 2);
  ranks.network().stop_multicast();
  const auto next = [&](std::uint64_t value) {
    ranks.put_to_all(0, {}, kFlag, value);
    return ranks.run_until(
        ranks.network().now_ns() + 1000 * kMillisecond, [&] { return ranks.all_have(0, value); },
        [&] {
          for (int rank = 1; rank < 15; ++rank) {
            if (ranks.word(rank) != value) ranks.at(rank).awaits_multicast(0);
          }
        });
  };
  const auto all_know = [&] {
    bool all = true;
    for (int rank = 1; rank < 15; ++rank) all &= ranks.at(rank).group().unreached_by() == 0;
    return all;
  };
  std::uint64_t learn = 1;
  for (; learn < 1000 && !all_know(); ++learn) ASSERT_TRUE(next(learn));
  ASSERT_TRUE(all_know());
  ASSERT_TRUE(ranks.run_until(ranks.network().now_ns() + 1000 * kMillisecond,
                              [&] { return ranks.at(0).settle(); }));
  const std::int64_t before_ns = ranks.network().now_ns();
  const std::int64_t before = ranks.network().sent();
  ASSERT_TRUE(next(learn + 1));
  // Down the three levels of the tree, and nobody has asked.
  EXPECT_LT(ranks.network().now_ns() - before_ns, 4 * kDelayNs);
  EXPECT_EQ(ranks.network().sent() - before, 1 + 14);
  EXPECT_EQ(ranks.at(0).group().unreached_by(), -1);
}

// Rank 5's parent from origin 0 with arity 2 is 2.
TEST(Group, OnlyWhoHearsNoMulticastGetsItByUnicast) {
  Multicasters ranks(8, 2);
  ranks.network().stop_multicast(0, 5);
  std::uint64_t value = 1;
  for (; value < 100'000 && ranks.counts(2).passed_on == 0; ++value) {
    ranks.put_to_all(0, {}, kFlag, value);
    ASSERT_TRUE(ranks.run_until(
        ranks.network().now_ns() + 1000 * kMillisecond, [&] { return ranks.word(5) == value; },
        [&] { ranks.at(5).awaits_multicast(0); }));
  }
  EXPECT_EQ(ranks.at(5).group().unreached_by(), 0);
  ranks.run_for(100 * kMillisecond);  // what was asked for has expired
  const std::int64_t before = ranks.network().sent();
  ranks.put_to_all(0, {}, kFlag, value);
  ranks.run_for(3 * kDelayNs);
  EXPECT_TRUE(ranks.all_have(0, value));
  EXPECT_EQ(ranks.network().sent() - before, 1 + 1);
  for (const int rank : {0, 1, 2, 3, 4, 6, 7}) EXPECT_EQ(ranks.at(rank).group().unreached_by(), -1);
  // In the other direction, and of others, rank 5 hears and is heard.
  for (const int origin : {5, 3}) {
    for (std::uint64_t i = 1; i <= 3; ++i) ranks.put_to_all(origin, {}, kFlag + 8, i);
    ranks.run_for(2 * kDelayNs);
    EXPECT_TRUE(ranks.all_have(origin, 3, kFlag + 8));
    EXPECT_EQ(ranks.counts(origin).passed_on, 0U);
  }
}

// Questions and answers by unicast move the window even if no rank waits or sees a gap.
TEST(Group, WhoHearsNothingAtAllFromTheStartGetsEverything) {
  Multicasters ranks(8, 2);
  for (int rank = 1; rank < 8; ++rank) ranks.network().stop_multicast(0, rank);
  put_many(ranks, 0);
  EXPECT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  expect_many(ranks, 0);
  EXPECT_LT(ranks.counts(0).asked_again, 200U);
}

TEST(Group, LossesDoNotLookLikeMulticastThatIsNotCarried) {
  VirtualDatagramOptions network = with_multicast();
  network.loss = 0.2;
  Multicasters ranks(8, 2, network);
  for (std::uint64_t round = 0; round < 20; ++round) {
    put_many(ranks, 0, 1 + round * kMany);
    ASSERT_TRUE(ranks.run_until(ranks.network().now_ns() + 10'000 * kMillisecond,
                                [&] { return ranks.at(0).settle(); }));
  }
  // Nor do many that are lost at a time, as in a full buffer.
  ranks.network().set_loss(0);
  for (int burst = 0; burst < 10; ++burst) {
    ranks.network().lose_next(0, 5, 200);
    put_many(ranks, 0, 1 + (20 + static_cast<std::uint64_t>(burst)) * kMany);
    ASSERT_TRUE(ranks.run_until(ranks.network().now_ns() + 10'000 * kMillisecond,
                                [&] { return ranks.at(0).settle(); }));
  }
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(ranks.at(rank).group().unreached_by(), -1);
}

// 40 ranks and a loss of 20 %: that a question reaches all and every answer arrives is as good as
// impossible in any one round.
TEST(Group, OnlyWhoHasNotAnsweredIsAskedAgain) {
  VirtualDatagramOptions network = with_multicast();
  network.loss = 0.2;
  Multicasters ranks(40, 4, network);
  ranks.put_to_all(0, {}, kFlag, 1);
  EXPECT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  EXPECT_TRUE(ranks.all_have(0, 1));
}

// With one level there are leaves only. No packet of the origin reaches them any more, not even its
// questions. Their requests show what they have.
TEST(Group, ARequestOfALeafIsAnAnswer) {
  Multicasters ranks(4, 4);
  for (std::uint64_t i = 1; i <= 250; ++i) ranks.put_to_all(0, {}, 8 * i, i);
  ranks.run_for(2 * kDelayNs);
  for (int rank = 1; rank < 4; ++rank) ranks.network().lose_next(0, rank, 1'000'000);
  for (std::uint64_t i = 251; i <= 506; ++i) ranks.put_to_all(0, {}, 8 * i, i);
  EXPECT_LT(ranks.counts(0).packets, 506U);
  EXPECT_TRUE(ranks.run_until(
      100 * kMillisecond, [&] { return ranks.counts(0).packets == 506; },
      [&] {
        for (int rank = 1; rank < 4; ++rank) ranks.at(rank).awaits_multicast(0);
      }));
  for (int rank = 1; rank < 4; ++rank) ranks.network().lose_next(0, rank, 0);
  EXPECT_TRUE(ranks.run_until(1000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
}

TEST(Group, WhoDiesInTheMiddleOfAQuestionIsPassedOver) {
  Multicasters ranks(15, 2);
  ranks.network().stop_multicast();
  put_many(ranks, 0);
  ranks.run_for(5 * kMillisecond);
  ASSERT_FALSE(ranks.at(0).settle());
  ranks.network().kill(2);
  ranks.run_for(20 * kMillisecond);
  EXPECT_FALSE(ranks.at(0).settle());
  for (int rank = 0; rank < 15; ++rank) ranks.at(rank).forget(2);
  EXPECT_TRUE(ranks.run_until(2000 * kMillisecond, [&] { return ranks.at(0).settle(); }));
  for (int rank = 1; rank < 15; ++rank) {
    for (std::uint64_t i = 1; i <= kMany && rank != 2; ++i) {
      ASSERT_EQ(ranks.word(rank, 8 * (i - 1)), i);
    }
  }
}

// Nobody has what is missing, and nobody waits for it.
TEST(Group, WhatADeadOriginDidNotGetThroughIsNotAskedForForEver) {
  Multicasters ranks(4, 2);
  for (int rank = 1; rank < 4; ++rank) ranks.network().lose_next(0, rank, 1);
  ranks.put_to_all(0, {}, kFlag, 1);
  ranks.put_to_all(0, {}, kFlag + 8, 1);
  ranks.run_for(2 * kDelayNs);
  EXPECT_EQ(ranks.word(1, kFlag + 8), 1U);
  ranks.network().kill(0);
  ranks.run_for(50 * kMillisecond);
  EXPECT_GT(ranks.counts(1).nacks, 2U);
  for (int rank = 1; rank < 4; ++rank) ranks.at(rank).forget(0);
  ranks.run_for(100 * kMillisecond);  // of each, one timer is due once more
  const auto asked = [&] {
    return ranks.counts(1).nacks + ranks.counts(2).nacks + ranks.counts(3).nacks;
  };
  const std::uint64_t before = asked();
  ranks.run_for(10'000 * kMillisecond);
  EXPECT_EQ(asked(), before);
}

// Packets of 1023 origins have come, and no timer checks these again; one origin is waited for, and
// is checked.
TEST(Group, OnlyOriginsThatAreWaitedForAreLookedAt) {
  constexpr int kRanks = 1024;
  constexpr int kReceiver = 5;  // multicast reaches nobody else, to save time and memory
  VirtualDatagramOptions network = with_multicast();
  network.max_payload = wire::kHeaderBytes + 8;
  ReliableOptions options = with_arity(4);
  options.pool_packets = 8;
  Multicasters ranks(kRanks, network, options);
  for (int origin = 0; origin < kRanks; ++origin) {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank != kReceiver) ranks.network().stop_multicast(origin, rank);
    }
    if (origin == kReceiver) continue;
    ranks.at(kReceiver).awaits_multicast(origin);
    ranks.put_to_all(origin, {}, kFlag, 1);
    ranks.network().advance();
    ranks.at(kReceiver).progress();
  }
  ranks.at(kReceiver).progress();
  const auto looked_at = [&](int times) {
    const std::uint64_t before = ranks.counts(kReceiver).looked_at;
    for (int i = 0; i < times; ++i) ranks.at(kReceiver).progress();
    return ranks.counts(kReceiver).looked_at - before;
  };
  EXPECT_EQ(looked_at(100), 0U);
  ranks.at(kReceiver).awaits_multicast(7);
  EXPECT_EQ(looked_at(100), 100U);
  EXPECT_GT(ranks.at(kReceiver).next_deadline_ns(), ranks.network().now_ns());
}

// Between all, or from one, to one, or between some, in one direction.
void stop_multicast_somewhere(Multicasters& ranks, base::Prng& prng) {
  const auto size = static_cast<std::uint64_t>(ranks.size());
  const std::uint64_t kind = prng.below(4);
  const int one = static_cast<int>(prng.below(size));
  if (kind == 0) return ranks.network().stop_multicast();
  for (int other = 0; other < ranks.size(); ++other) {
    if (kind == 1) ranks.network().stop_multicast(one, other);
    if (kind == 2) ranks.network().stop_multicast(other, one);
    if (kind == 3 && prng.below(3) == 0) ranks.network().stop_multicast(one, other);
  }
}

// Everything at once, from seeds: loss, duplicates, reordering, all ranks multicast, and the
// network ceases to carry multicast between some of them.
TEST(Group, EverybodyGetsEverythingOnABadNetwork) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Prng prng(seed);
    VirtualDatagramOptions network = with_multicast();
    const double losses[] = {0, 0.001, 0.01, 0.1};
    network.seed = seed;
    network.loss = losses[seed % 4];
    network.duplicates = 0.05;
    network.delay_max_ns = 20 * kDelayNs;
    const int size = 2 + static_cast<int>(prng.below(12));
    Multicasters ranks(size, 1 + static_cast<int>(prng.below(4)), network);
    const std::uint64_t puts = 1 + prng.below(100);
    const std::uint64_t ends_at = 1 + prng.below(2 * puts);  // or never
    const auto bytes = pattern(prng.below(4000));
    for (std::uint64_t i = 1; i <= puts; ++i) {
      for (int origin = 0; origin < size; ++origin) {
        // Each origin has its own flags; their places are never used twice.
        const std::size_t flag = 16384 + 8 * (static_cast<std::size_t>(origin) * 100 + i - 1);
        ranks.put_to_all(origin, bytes, flag, i);
      }
      if (prng.below(4) == 0) ranks.run_for(static_cast<std::int64_t>(prng.below(200'000)));
      if (i == ends_at) stop_multicast_somewhere(ranks, prng);
    }
    const auto everybody = [&] {
      bool all = true;
      for (int rank = 0; rank < size; ++rank) all &= ranks.at(rank).settle();
      return all;
    };
    ASSERT_TRUE(ranks.run_until(100'000 * kMillisecond, everybody));
    for (int origin = 0; origin < size; ++origin) {
      for (std::uint64_t i = 1; i <= puts; ++i) {
        const std::size_t flag = 16384 + 8 * (static_cast<std::size_t>(origin) * 100 + i - 1);
        ASSERT_TRUE(ranks.all_have(origin, i, flag)) << "origin " << origin << ", put " << i;
      }
    }
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), ranks.region(rank)));
    }
  }
}

}  // namespace
}  // namespace unisono::reliable::group_test
