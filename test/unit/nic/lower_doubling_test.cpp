// SPDX-License-Identifier: BSD-3-Clause
// Lowering of allgathers with messages of doubling size, against Bruck's arithmetic, for all
// numbers of ranks up to 64. Also, for each thing that the NIC program cannot do, a schedule that
// does it and the reason of the refusal.
#include "nic/lowering/lower_doubling.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "algorithm/algorithm.hpp"
#include "nic/lowering/row.hpp"
#include "schedule/builder.hpp"

namespace unisono::nic::lower_doubling_test {
namespace {

using schedule::Builder;
using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

constexpr std::int64_t kCount = 3;

Shape shape_of(int ranks, std::int64_t count = kCount) {
  Shape shape;
  shape.collective = Collective::allgather;
  shape.ranks = ranks;
  shape.count = count;
  return shape;
}

Schedule build(const char* name, int ranks, int rank, std::int64_t count = kCount) {
  const algorithm::Algorithm* row = algorithm::find(Collective::allgather, name);
  const Shape shape = shape_of(ranks, count);
  auto schedule = algorithm::build(*row, shape, algorithm::default_parameters(*row, shape), rank);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return *std::move(schedule);
}

std::vector<Doubling> lower_all(const char* name, int ranks, std::int64_t count = kCount) {
  std::vector<Doubling> all;
  for (int rank = 0; rank < ranks; ++rank) {
    auto doubling = lower_doubling(build(name, ranks, rank, count));
    if (!doubling.ok()) {
      ADD_FAILURE() << doubling.error().message;
      return {};
    }
    all.push_back(*std::move(doubling));
  }
  const base::Status whole = check_doubling(all);
  EXPECT_TRUE(whole.ok()) << name << ", " << ranks << " ranks: " << whole.error().message;
  return all;
}

// The blocks of `count` ranks from `first` on, cyclically.
std::uint64_t blocks_from(int first, int count, int ranks) {
  std::uint64_t blocks = 0;
  for (int i = 0; i < count; ++i) blocks |= std::uint64_t{1} << (first + i) % ranks;
  return blocks;
}

TEST(LowerDoubling, Bruck) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    const auto all = lower_all("bruck", ranks);
    ASSERT_EQ(static_cast<int>(all.size()), ranks);
    const int steps = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
    for (const Doubling& each : all) {
      ASSERT_EQ(static_cast<int>(each.gives.size()), steps);
      ASSERT_EQ(static_cast<int>(each.takes.size()), steps);
      for (int step = 0; step < steps; ++step) {
        const int distance = 1 << step;
        const int count = std::min(distance, ranks - distance);
        const int below = (each.rank - distance + ranks) % ranks;
        const int above = (each.rank + distance) % ranks;
        const auto at = static_cast<std::size_t>(step);
        EXPECT_EQ(each.gives[at],
                  (BlockMessage{below, step, blocks_from(each.rank, count, ranks)}));
        EXPECT_EQ(each.takes[at], (BlockMessage{above, step, blocks_from(above, count, ranks)}));
      }
    }
  }
}

// In each dimension partners swap what they have; without a fold that is as good.
TEST(LowerDoubling, RecursiveDoublingOfAPowerOfTwo) {
  for (const int ranks : {2, 4, 8, 16, 32, 64}) {
    for (const Doubling& each : lower_all("recursive-doubling", ranks)) {
      ASSERT_EQ(each.gives.size(), each.takes.size());
      for (std::size_t step = 0; step < each.gives.size(); ++step) {
        const int distance = 1 << step;
        const int partner = each.rank ^ distance;
        const std::uint64_t own = blocks_from(each.rank & -distance, distance, ranks);
        const std::uint64_t other = blocks_from(partner & -distance, distance, ranks);
        const auto slot = static_cast<schedule::SlotId>(step);
        EXPECT_EQ(each.gives[step], (BlockMessage{partner, slot, own}));
        EXPECT_EQ(each.takes[step], (BlockMessage{partner, slot, other}));
      }
    }
  }
}

TEST(LowerDoubling, TheLengthOfBlocksDoesNotMatter) {
  for (const int ranks : {2, 5, 12}) {
    EXPECT_EQ(lower_all("bruck", ranks, 1), lower_all("bruck", ranks, 40));
  }
}

// Why a schedule cannot be lowered; "" if it can.
std::string reason(const Schedule& schedule) {
  const auto doubling = lower_doubling(schedule);
  if (doubling.ok()) return "";
  EXPECT_EQ(doubling.error().code, base::Code::unsupported);
  return doubling.error().message;
}

TEST(LowerDoublingRefuses, OtherShapes) {
  Shape barrier;
  barrier.collective = Collective::barrier;
  barrier.ranks = 4;
  EXPECT_EQ(reason(Builder(barrier, 1).take()),
            "the NIC cannot run this barrier at rank 1: it is no allgather");
  EXPECT_EQ(reason(build("bruck", 1, 0)),
            "the NIC cannot run this allgather at rank 0: a single rank has nobody to send to");
  EXPECT_EQ(reason(build("bruck", 65, 2)),
            "the NIC cannot run this allgather at rank 2: it has 65 ranks, and the NIC keeps track "
            "of 64 blocks");
}

// A rank that is folded onto another gets the whole result, and so its own block as well.
TEST(LowerDoublingRefuses, OwnBlocksThatComeBack) {
  EXPECT_EQ(reason(build("recursive-doubling", 5, 1)),
            "the NIC cannot run this allgather at rank 1: its own block comes back to it");
  EXPECT_EQ(reason(build("recursive-doubling", 5, 0)), "");
  EXPECT_EQ(reason(build("gather-release", 8, 3)),
            "the NIC cannot run this allgather at rank 3: its own block comes back to it");
}

TEST(LowerDoublingRefuses, MessagesWithoutTheOwnBlock) {
  EXPECT_NE(reason(build("ring", 4, 1))
                .find("it sends others' blocks without its own; a NIC sends "
                      "a message when the own process has come"),
            std::string::npos)
      << reason(build("ring", 4, 1));
}

TEST(LowerDoublingRefuses, TooManyMessages) {
  EXPECT_EQ(reason(build("direct", 16, 3)),
            "the NIC cannot run this allgather at rank 3: it sends 15 messages, and the NIC's "
            "table has room for 8");
  EXPECT_EQ(reason(build("direct", 9, 3)), "");
}

// Schedules that no algorithm writes: rank 1 of 3; slot 0 is from rank 0, slot 1 from rank 2.
class HandWrittenDoubling : public testing::Test {
 protected:
  static Builder begin(std::int64_t slot_count = kCount) {
    Builder b(shape_of(3), 1);
    b.slot(0, slot_count);
    b.slot(2, slot_count);
    return b;
  }
  static schedule::Range place(int rank) { return schedule::output(kCount * rank, kCount); }
  static std::string why(Builder b) {
    const std::string text = reason(std::move(b).take());
    return text.substr(text.find(": ") + 2);
  }
  const schedule::Range own = schedule::input(0, kCount);
};

TEST_F(HandWrittenDoubling, TheRightOneIsTaken) {
  Builder b = begin();
  b.copy(place(1), own);
  const auto placed = b.copy(place(0), b.of(0), {b.wait(0)});
  b.send(2, 0, schedule::output(0, 2 * kCount), {placed});
  b.copy(place(2), b.of(1), {b.wait(1)});
  const auto doubling = lower_doubling(std::move(b).take());
  ASSERT_TRUE(doubling.ok()) << doubling.error().message;
  const Doubling expected{
      .rank = 1,
      .ranks = 3,
      .gives = {{.peer = 2, .slot = 0, .blocks = 3}},
      .takes = {{.peer = 0, .slot = 0, .blocks = 1}, {.peer = 2, .slot = 1, .blocks = 4}}};
  EXPECT_EQ(*doubling, expected);
}

TEST_F(HandWrittenDoubling, APartOfABlock) {
  Builder b = begin();
  b.copy(place(1), own);
  b.send(2, 0, schedule::input(0, 2));
  b.copy(place(0), b.of(0), {b.wait(0)});
  b.copy(place(2), b.of(1), {b.wait(1)});
  EXPECT_EQ(why(std::move(b)), "the 2 elements of its vector that it sends are not whole blocks");
}

TEST_F(HandWrittenDoubling, WhatIsNotThereYet) {
  Builder b = begin();
  b.copy(place(1), own);
  b.send(2, 0, schedule::output(0, 2 * kCount));
  b.copy(place(0), b.of(0), {b.wait(0)});
  b.copy(place(2), b.of(1), {b.wait(1)});
  EXPECT_EQ(why(std::move(b)), "the 6 elements of the result that it sends are not whole blocks");
}

TEST_F(HandWrittenDoubling, ABlockInTwoPlaces) {
  Builder b = begin();
  b.copy(place(1), own);
  b.copy(place(0), b.of(0), {b.wait(0)});
  b.copy(place(2), b.of(0));
  EXPECT_EQ(why(std::move(b)), "it copies slot 0 to two places");
}

TEST_F(HandWrittenDoubling, ABlockThatDoesNotCome) {
  Builder b = begin();
  b.copy(place(1), own);
  b.copy(place(0), b.of(0), {b.wait(0)});
  EXPECT_EQ(why(std::move(b)), "the block of rank 2 does not come");
}

TEST_F(HandWrittenDoubling, MoreThanItKeeps) {
  Builder b = begin(kCount + 1);
  b.copy(place(1), own);
  b.copy(place(0), schedule::slot_range(0, 0, kCount), {b.wait(0)});
  b.copy(place(2), schedule::slot_range(1, 0, kCount), {b.wait(1)});
  EXPECT_EQ(why(std::move(b)),
            "not all that comes by slot 0 is blocks of the result, whole and once");
}

TEST_F(HandWrittenDoubling, TheOwnVectorElsewhere) {
  Builder b = begin();
  b.copy(place(1), own);
  b.copy(place(0), own);
  b.copy(place(2), b.of(1), {b.wait(1)});
  EXPECT_EQ(why(std::move(b)), "it copies its own vector to the place of rank 0");
}

TEST_F(HandWrittenDoubling, ASum) {
  Builder b = begin();
  b.reduce(place(1), own, b.of(0), {b.wait(0)});
  EXPECT_EQ(why(std::move(b)), "it combines");
}

TEST(CheckDoubling, SaysWhatDoesNotFit) {
  const std::vector<Doubling> all = lower_all("bruck", 4);
  auto spoilt = all;
  spoilt[1].gives.pop_back();
  EXPECT_EQ(check_doubling(spoilt).error().message,
            "no allgather for the NIC: rank 3 expects one message in slot 1, and rank 1 gives 0");
  spoilt = all;
  spoilt[1].gives[1].blocks = 2;
  EXPECT_EQ(check_doubling(spoilt).error().message,
            "no allgather for the NIC: rank 1 gives what slot 1 of rank 3 does not expect");
  spoilt = all;
  spoilt[1].gives[0].slot = 7;
  EXPECT_EQ(check_doubling(spoilt).error().message,
            "no allgather for the NIC: rank 1 gives what slot 7 of rank 0 does not expect");
}

// Two that wait for each other.
TEST(CheckDoubling, FindsCircles) {
  const std::vector<Doubling> circle = {
      {.rank = 0, .ranks = 2, .gives = {{1, 0, 3}}, .takes = {{1, 0, 3}}},
      {.rank = 1, .ranks = 2, .gives = {{0, 0, 3}}, .takes = {{0, 0, 3}}}};
  EXPECT_EQ(check_doubling(circle).error().message,
            "no allgather for the NIC: rank 0 never gets the block of rank 1");
}

TEST(DoublingRow, OfBruck) {
  std::vector<unisono_nic_address> ranks(5);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].mac[5] = static_cast<std::uint8_t>(rank + 1);
  }
  GroupAddresses group;
  group.id = {7, 9};
  group.ranks = ranks;
  const auto row = make_row(*lower_doubling(build("bruck", 5, 3)), group);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->ranks, 5U);
  EXPECT_EQ(row->gives, 3U);
  EXPECT_EQ(row->takes, 3U);
  EXPECT_EQ(row->largest, 2U);
  EXPECT_EQ(row->at[4].mac[5], 5);
  EXPECT_EQ(row->give[1].peer, 1);
  EXPECT_EQ(row->give[1].slot, 1);
  EXPECT_EQ(row->give[1].blocks, 0b11000U);
  EXPECT_EQ(row->give[1].count, 2);
  EXPECT_EQ(row->give[1].first, 3);
  EXPECT_EQ(row->take[1].peer, 0);
  EXPECT_EQ(row->take[1].blocks, 0b00011U);
  EXPECT_EQ(row->take[1].first, 0);
  EXPECT_EQ(unisono_nic_room(&*row, 2), 6U);
}

}  // namespace
}  // namespace unisono::nic::lower_doubling_test
