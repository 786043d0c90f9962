// SPDX-License-Identifier: BSD-3-Clause
// The combined acknowledgement of a multicast when a member dies, at any moment and whoever learns
// of it first: *all have all* is said only if the dead member had it, too.
#include "reliable/group/acknowledgement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reliable/group/repair_tree.hpp"
#include "unit/reliable/multicasters.hpp"

namespace unisono::reliable::acknowledgement_test {
namespace {

constexpr std::int64_t kLong = 1000 * kMillisecond;

class Origin : public Multicasters {
 public:
  using Multicasters::Multicasters;

  // A message of rank 0; returns its number.
  std::uint64_t put_next() {
    ++value_;
    put_to_all(0, {}, kFlag, value_);
    return at(0).group().last();
  }
  std::uint64_t value() const { return value_; }
  Acknowledgement of(std::uint64_t number) { return at(0).group().acknowledgement(number); }
  // Whether rank 0 is done with all that it has sent.
  bool settles(std::int64_t time_ns = kLong) {
    return run_until(
        network().now_ns() + time_ns, [&] { return at(0).settle(); },
        [&] {
          for (int rank = 1; rank < size(); ++rank) {
            if (word(rank) != value_) at(rank).awaits_multicast(0);
          }
        });
  }
  void all_forget(int lost) {
    for (int rank = 0; rank < size(); ++rank) at(rank).forget(lost);
  }
  bool living_have(int dead) {
    for (int rank = 1; rank < size(); ++rank) {
      if (rank != dead && word(rank) != value_) return false;
    }
    return true;
  }

 private:
  std::uint64_t value_ = 0;
};

TEST(FailedNumbers, AreRangesOfWhichNeighboursAreOne) {
  FailedNumbers failed;
  EXPECT_FALSE(failed.has(0));
  failed.add(3, 3);
  EXPECT_EQ(failed.count(), 0U);
  failed.add(3, 5);
  failed.add(5, 7);
  failed.add(6, 6);
  failed.add(10, 11);
  EXPECT_EQ(failed.count(), 5U);
  for (std::uint64_t number = 0; number < 15; ++number) {
    EXPECT_EQ(failed.has(number), (number >= 3 && number < 7) || number == 10) << number;
  }
  EXPECT_TRUE(failed.has_any(0, 3));
  EXPECT_TRUE(failed.has_any(4, 5));
  EXPECT_TRUE(failed.has_any(6, 9));
  EXPECT_TRUE(failed.has_any(7, 20));
  EXPECT_FALSE(failed.has_any(0, 2));
  EXPECT_FALSE(failed.has_any(7, 9));
  EXPECT_FALSE(failed.has_any(11, 20));
}

TEST(RepairTree, KnowsWhereALostMemberWasPassedOver) {
  const topology::HostMap hosts = topology::HostMap::apart(15);
  RepairTree tree(hosts, 2);
  RepairTree other(hosts, 2);
  EXPECT_TRUE(tree.forget(5, Departure::left));
  EXPECT_EQ(tree.lost_set(), 0U);
  EXPECT_FALSE(tree.passes_over_lost(0, 2));
  EXPECT_FALSE(tree.forget(5, Departure::lost)) << "it has left already";
  EXPECT_TRUE(tree.forget(12, Departure::lost));  // below 5, which is below 2
  EXPECT_TRUE(tree.forget(3, Departure::lost));
  EXPECT_TRUE(tree.passes_over_lost(0, 2));
  EXPECT_TRUE(tree.passes_over_lost(0, 1));
  for (const int rank : {0, 4, 6}) EXPECT_FALSE(tree.passes_over_lost(0, rank)) << rank;
  EXPECT_TRUE(other.forget(3, Departure::lost));
  EXPECT_NE(other.lost_set(), tree.lost_set());
  EXPECT_TRUE(other.forget(12, Departure::lost));
  EXPECT_EQ(other.lost_set(), tree.lost_set()) << "in any order";
}

TEST(Acknowledgement, IsNotYetAndThenAllHaveAll) {
  Origin ranks(7, 2);
  const std::uint64_t first = ranks.put_next();
  EXPECT_EQ(ranks.of(first), Acknowledgement::not_yet);
  ASSERT_TRUE(ranks.settles());
  EXPECT_EQ(ranks.of(first), Acknowledgement::all_have_all);
  EXPECT_EQ(ranks.of(ranks.put_next()), Acknowledgement::not_yet);
  EXPECT_EQ(ranks.of(first), Acknowledgement::all_have_all);
}

TEST(Acknowledgement, OfADeadMemberIsFailedAndLaterOnesAreTheOthers) {
  for (int dead = 1; dead < 7; ++dead) {
    SCOPED_TRACE("rank " + std::to_string(dead));
    Origin ranks(7, 2);
    const std::uint64_t first = ranks.put_next();
    ASSERT_TRUE(ranks.settles());
    ranks.network().kill(dead);
    const std::uint64_t second = ranks.put_next();
    EXPECT_FALSE(ranks.settles(100 * kMillisecond));
    EXPECT_TRUE(ranks.living_have(dead));
    EXPECT_EQ(ranks.of(second), Acknowledgement::not_yet);
    ranks.all_forget(dead);
    EXPECT_EQ(ranks.of(second), Acknowledgement::failed) << "at once";
    ASSERT_TRUE(ranks.settles());
    EXPECT_EQ(ranks.of(second), Acknowledgement::failed) << "for ever";
    const std::uint64_t third = ranks.put_next();
    ASSERT_TRUE(ranks.settles());
    EXPECT_EQ(ranks.of(third), Acknowledgement::all_have_all);
    EXPECT_EQ(ranks.of(first), Acknowledgement::all_have_all) << "it was before the loss";
    EXPECT_EQ(ranks.counts(0).failed, 1U);
  }
}

// Packets that wait for room are for the dead member, too.
TEST(Acknowledgement, OfWhatHasNotLeftYetIsFailed) {
  Origin ranks(3, 2);
  ranks.network().kill(2);
  for (int i = 0; i < 1500; ++i) ranks.put_next();
  EXPECT_GT(ranks.counts(0).waited, 0U);
  ranks.all_forget(2);
  ASSERT_TRUE(ranks.settles());
  EXPECT_EQ(ranks.counts(0).failed, 1500U);
  EXPECT_EQ(ranks.of(1), Acknowledgement::failed);
  EXPECT_EQ(ranks.of(1500), Acknowledgement::failed);
}

TEST(Acknowledgement, AMemberThatHasLeftLacksNothing) {
  Origin ranks(7, 2);
  ranks.network().kill(5);
  const std::uint64_t number = ranks.put_next();
  for (int rank = 0; rank < 7; ++rank) ranks.at(rank).forget(5, Departure::left);
  ASSERT_TRUE(ranks.settles());
  EXPECT_EQ(ranks.of(number), Acknowledgement::all_have_all);
  EXPECT_EQ(ranks.counts(0).failed, 0U);
}

// Its parent knows it to be lost and passes it over; the origin does not know yet.
TEST(Acknowledgement, AnAnswerTellsThatALostMemberWasPassedOver) {
  Origin ranks(7, 2);
  ranks.network().kill(5);
  ranks.at(2).forget(5);
  const std::uint64_t first = ranks.put_next();
  ASSERT_TRUE(ranks.settles());
  EXPECT_EQ(ranks.of(first), Acknowledgement::failed);
  ranks.at(0).forget(5);
  const std::uint64_t second = ranks.put_next();
  ASSERT_TRUE(ranks.settles());
  EXPECT_EQ(ranks.of(second), Acknowledgement::all_have_all) << "the question names the loss";
}

// Rank 3 has one child, 7. Its parent 1 takes it for a leaf, whose requests are answers.
TEST(Acknowledgement, ARequestIsNoAnswerForALostMember) {
  Origin ranks(8, 2);
  ranks.network().kill(7);
  ranks.at(1).forget(7);
  const std::uint64_t number = ranks.put_next();
  const bool settled = ranks.run_until(
      kLong, [&] { return ranks.at(0).settle(); }, [&] { ranks.at(3).awaits_multicast(0); });
  ASSERT_TRUE(settled);
  EXPECT_EQ(ranks.of(number), Acknowledgement::failed);
}

// A member dies while a message and its question are under way on a bad network. The others learn
// of it one after the other, in any order.
TEST(Acknowledgement, IsRightWheneverAMemberDies) {
  std::array<int, 3> results{};
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Prng prng(seed);
    transport::VirtualDatagramOptions network = with_multicast();
    network.seed = seed;
    network.loss = seed % 2 == 0 ? 0.1 : 0;
    network.delay_max_ns = 4 * kDelayNs;
    const int size = 3 + static_cast<int>(prng.below(10));
    Origin ranks(size, 1 + static_cast<int>(prng.below(4)), network);
    const int dead = 1 + static_cast<int>(prng.below(static_cast<std::uint64_t>(size) - 1));
    const std::uint64_t number = ranks.put_next();
    ranks.at(0).settle();
    ranks.run_for(static_cast<std::int64_t>(prng.below(30 * kDelayNs)));
    ranks.network().kill(dead);
    const bool had_it = ranks.word(dead) == ranks.value();
    std::vector<int> order;
    for (int rank = 0; rank < size; ++rank) {
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(prng.below(order.size() + 1)), rank);
    }
    for (const int rank : order) {
      ranks.settles(static_cast<std::int64_t>(prng.below(10 * kMillisecond)));
      ASSERT_TRUE(had_it || ranks.of(number) != Acknowledgement::all_have_all);
      ranks.at(rank).forget(dead);
    }
    ASSERT_TRUE(ranks.settles());
    const Acknowledgement result = ranks.of(number);
    ASSERT_NE(result, Acknowledgement::not_yet);
    if (!had_it) {
      ASSERT_EQ(result, Acknowledgement::failed);
    }
    ASSERT_TRUE(ranks.living_have(dead));
    ++results[static_cast<std::size_t>(result)];
    const std::uint64_t later = ranks.put_next();
    ASSERT_TRUE(ranks.settles());
    ASSERT_EQ(ranks.of(later), Acknowledgement::all_have_all);
  }
  for (const Acknowledgement result : {Acknowledgement::all_have_all, Acknowledgement::failed}) {
    EXPECT_GT(results[static_cast<std::size_t>(result)], 8) << "both happen";
  }
}

}  // namespace
}  // namespace unisono::reliable::acknowledgement_test
