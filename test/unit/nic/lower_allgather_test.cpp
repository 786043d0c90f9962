// SPDX-License-Identifier: BSD-3-Clause
// Lowering of allgathers against the arithmetic that the schedules are made from, for all numbers
// of ranks up to 64; and, for each thing that the NIC program cannot do, a schedule that does it
// and the reason that is given.
#include "nic/lowering/lower_allgather.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <set>
#include <string>

#include "algorithm/algorithm.hpp"
#include "nic/lowering/row.hpp"
#include "schedule/builder.hpp"

namespace unisono::nic::lower_allgather_test {
namespace {

using schedule::Builder;
using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

constexpr std::int64_t kCount = 5;

Shape shape_of(int ranks) {
  Shape shape;
  shape.collective = Collective::allgather;
  shape.ranks = ranks;
  shape.count = kCount;
  return shape;
}

// With the parameters given first.
Schedule build(const char* name, int ranks, int rank, std::vector<int> parameters = {}) {
  const algorithm::Algorithm* row = algorithm::find(Collective::allgather, name);
  algorithm::Parameters all = algorithm::default_parameters(*row, shape_of(ranks));
  std::copy(parameters.begin(), parameters.end(), all.values.begin());
  auto schedule = algorithm::build(*row, shape_of(ranks), all, rank);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return *std::move(schedule);
}

std::vector<Routes> lower_all(const char* name, int ranks,
                              const std::vector<int>& parameters = {}) {
  std::vector<Routes> all;
  for (int rank = 0; rank < ranks; ++rank) {
    auto routes = lower_allgather(build(name, ranks, rank, parameters));
    if (!routes.ok()) {
      ADD_FAILURE() << routes.error().message;
      return {};
    }
    all.push_back(*std::move(routes));
  }
  const base::Status whole = check_routes(all);
  EXPECT_TRUE(whole.ok()) << name << ", " << ranks << " ranks: " << whole.error().message;
  return all;
}

const Route& route(const std::vector<Routes>& all, int rank, int origin) {
  return all[static_cast<std::size_t>(rank)].of[static_cast<std::size_t>(origin)];
}

TEST(LowerAllgather, ConcurrentBroadcast) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    const auto all = lower_all("concurrent-broadcast", ranks);
    ASSERT_EQ(static_cast<int>(all.size()), ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      for (int origin = 0; origin < ranks; ++origin) {
        const unsigned distance = static_cast<unsigned>((rank - origin + ranks) % ranks);
        const unsigned last = std::bit_floor(distance);
        std::vector<int> targets;
        for (unsigned hop = last == 0 ? 1 : 2 * last; distance + hop < static_cast<unsigned>(ranks);
             hop *= 2) {
          targets.push_back((rank + static_cast<int>(hop)) % ranks);
        }
        EXPECT_EQ(route(all, rank, origin).targets, targets);
        const int from = distance == 0 ? -1 : (rank - static_cast<int>(last) + ranks) % ranks;
        EXPECT_EQ(route(all, rank, origin).from, from);
      }
    }
  }
}

// The state of a group: the ranks that a rank exchanges packets with. Only the numbers of routes
// and arrival bits, one for each origin, grow with the number of ranks.
TEST(LowerAllgather, PeersGrowWithTheLogarithm) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    const auto steps = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks - 1)));
    const auto all = lower_all("concurrent-broadcast", ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int> targets, sources;
      std::size_t packets = 0;
      for (int origin = 0; origin < ranks; ++origin) {
        const Route& way = route(all, rank, origin);
        targets.insert(way.targets.begin(), way.targets.end());
        packets += way.targets.size();
        if (way.from >= 0) sources.insert(way.from);
      }
      EXPECT_EQ(targets.size(), steps) << ranks;
      EXPECT_EQ(sources.size(), steps) << ranks;
      EXPECT_EQ(packets, static_cast<std::size_t>(ranks - 1)) << "each block comes to each rank";
    }
  }
}

TEST(LowerAllgather, Ring) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    const auto all = lower_all("ring", ranks);
    ASSERT_EQ(static_cast<int>(all.size()), ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      const int next = (rank + 1) % ranks;
      for (int origin = 0; origin < ranks; ++origin) {
        const std::vector<int> targets =
            next == origin ? std::vector<int>{} : std::vector<int>{next};
        EXPECT_EQ(route(all, rank, origin).targets, targets);
      }
    }
  }
}

// All that send blocks one by one.
TEST(LowerAllgather, OthersThatSendBlocksAsTheyCome) {
  for (const int ranks : {2, 3, 5, 8, 16, 24, 33, 64}) {
    for (const char* name : {"direct", "prefix-send"}) lower_all(name, ranks);
    for (const int k : {1, 2, 4, 8}) {
      lower_all("kshift", ranks, {k, 1});
      if (ranks % k == 0) lower_all("kprefix", ranks, {k, 1});
    }
  }
}

// Nobody's packets are more than P - 1, however the paths run.
TEST(LowerAllgather, EachBlockComesOnce) {
  for (const char* name : {"ring", "concurrent-broadcast", "direct", "prefix-send"}) {
    for (const int ranks : {2, 7, 16}) {
      std::size_t sent = 0;
      for (const Routes& routes : lower_all(name, ranks)) {
        for (const Route& each : routes.of) sent += each.targets.size();
      }
      EXPECT_EQ(sent, static_cast<std::size_t>(ranks * (ranks - 1))) << name;
    }
  }
}

// Why a schedule cannot be lowered; "" if it can.
std::string reason(const Schedule& schedule) {
  const auto routes = lower_allgather(schedule);
  if (routes.ok()) return "";
  EXPECT_EQ(routes.error().code, base::Code::unsupported);
  return routes.error().message;
}

TEST(LowerAllgatherRefuses, OtherShapes) {
  Shape barrier;
  barrier.collective = Collective::barrier;
  barrier.ranks = 4;
  EXPECT_EQ(reason(Builder(barrier, 1).take()),
            "the NIC cannot run this barrier at rank 1: it is no allgather");
  EXPECT_EQ(reason(build("ring", 1, 0)),
            "the NIC cannot run this allgather at rank 0: a single rank has nobody to send to");
  EXPECT_EQ(reason(build("ring", 65, 2)),
            "the NIC cannot run this allgather at rank 2: it has 65 ranks, and the NIC keeps track "
            "of 64 blocks");
}

TEST(LowerAllgatherRefuses, EmptyBlocks) {
  Shape empty = shape_of(3);
  empty.count = 0;
  EXPECT_EQ(
      reason(Builder(empty, 1).take()),
      "the NIC cannot run this allgather at rank 1: the block of rank 0 is empty and "
      "cannot be told from others; lower the same schedule of longer blocks, which go the same "
      "ways");
}

TEST(LowerAllgatherRefuses, MessagesOfSeveralBlocks) {
  EXPECT_EQ(reason(build("recursive-doubling", 4, 0)),
            "the NIC cannot run this allgather at rank 0, op 6: it copies 10 elements to element "
            "10 of the result, which is not one rank's block; a NIC neither joins nor splits "
            "blocks");
  for (const char* name : {"bruck", "neighbor-exchange", "gather-release", "gather-broadcast",
                           "mesh2d", "hypercube", "two-level"}) {
    EXPECT_NE(reason(build(name, 16, 3)).find("neither joins nor splits blocks"), std::string::npos)
        << name << ": " << reason(build(name, 16, 3));
  }
}

// Schedules that no algorithm writes: rank 1 of 3; slot 0 is from rank 0, slot 1 from rank 2.
class HandWrittenAllgather : public testing::Test {
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

TEST_F(HandWrittenAllgather, TheRightOneIsTaken) {
  Builder b = begin();
  b.send(2, 0, own);
  b.copy(place(1), own);
  const auto arrived = b.wait(0);
  b.send(2, 1, b.of(0), {arrived});
  const auto placed = b.copy(place(0), b.of(0), {arrived});
  b.send(0, 0, place(0), {placed});  // from where it lies is as good
  b.copy(place(2), b.of(1), {b.wait(1)});
  const auto routes = lower_allgather(std::move(b).take());
  ASSERT_TRUE(routes.ok()) << routes.error().message;
  const Routes expected{.rank = 1, .ranks = 3, .of = {{0, {2, 0}}, {-1, {2}}, {2, {}}}};
  EXPECT_EQ(*routes, expected);
}

TEST_F(HandWrittenAllgather, APartOfABlock) {
  Builder b = begin();
  b.send(2, 0, schedule::input(0, 2));
  b.copy(place(0), b.of(0), {b.wait(0)});
  b.copy(place(2), b.of(1), {b.wait(1)});
  EXPECT_EQ(why(std::move(b)),
            "it sends 2 elements of its vector, which are not one rank's block; "
            "a NIC sends blocks on as they come");
}

TEST_F(HandWrittenAllgather, ABlockInTwoPlaces) {
  Builder b = begin();
  b.copy(place(0), b.of(0), {b.wait(0)});
  b.copy(place(2), b.of(0), {b.wait(0)});
  EXPECT_EQ(why(std::move(b)), "it copies slot 0 to two places");
}

TEST_F(HandWrittenAllgather, TwoBlocksInOnePlace) {
  Builder b = begin();
  b.copy(place(0), b.of(0), {b.wait(0)});
  b.copy(place(0), b.of(1), {b.wait(1)});
  EXPECT_EQ(why(std::move(b)), "the block of rank 0 comes twice");
}

TEST_F(HandWrittenAllgather, TheOwnPlaceOverwritten) {
  Builder b = begin();
  b.copy(place(1), b.of(0), {b.wait(0)});
  EXPECT_EQ(why(std::move(b)), "it overwrites its own block");
}

TEST_F(HandWrittenAllgather, TheOwnVectorElsewhere) {
  Builder b = begin();
  b.copy(place(2), own);
  EXPECT_EQ(why(std::move(b)), "it copies its own vector to the place of rank 2");
}

TEST_F(HandWrittenAllgather, ABlockThatDoesNotCome) {
  Builder b = begin();
  b.copy(place(0), b.of(0), {b.wait(0)});
  EXPECT_EQ(why(std::move(b)), "the block of rank 2 does not come by itself");
}

TEST_F(HandWrittenAllgather, ASum) {
  Builder b = begin();
  b.reduce(place(1), own, b.of(0), {b.wait(0)});
  EXPECT_EQ(why(std::move(b)), "it combines");
}

TEST(CheckRoutes, SayWhatDoesNotFit) {
  std::vector<Routes> all = lower_all("concurrent-broadcast", 4);
  auto spoilt = all;
  spoilt[1].of[0].targets.clear();
  EXPECT_EQ(check_routes(spoilt).error().message,
            "no allgather for the NIC: the block of rank 0 never comes to rank 3");
  spoilt = all;
  spoilt[1].of[0].targets.clear();
  spoilt[2].of[0].targets.push_back(3);
  EXPECT_EQ(check_routes(spoilt).error().message,
            "no allgather for the NIC: the block of rank 0 comes from rank 2 and unexpectedly to "
            "rank 3");
  spoilt = all;
  spoilt[0].of[0].targets.push_back(1);
  EXPECT_EQ(check_routes(spoilt).error().message,
            "no allgather for the NIC: the block of rank 0 comes twice to rank 1");
}

std::vector<unisono_nic_address> addresses(int ranks) {
  std::vector<unisono_nic_address> list(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    list[static_cast<std::size_t>(rank)].mac[5] = static_cast<std::uint8_t>(rank + 1);
  }
  return list;
}

TEST(AllgatherRow, OfConcurrentBroadcast) {
  const auto ranks = addresses(8);
  GroupAddresses group;
  group.id = {7, 9};
  group.ranks = ranks;
  group.multicast = multicast_address(inet_addr("239.129.2.3"), htons(5000));
  const auto row = make_row(*lower_allgather(build("concurrent-broadcast", 8, 1)), group);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->ranks, 8U);
  EXPECT_EQ(row->rank, 1U);
  EXPECT_EQ(row->depth, 4U) << "blocks are kept as long again";
  EXPECT_EQ(row->own.mac[5], 2);
  EXPECT_EQ(row->at[7].mac[5], 8);
  EXPECT_EQ(row->route[0].from, 0);
  EXPECT_EQ(row->route[6].from, 7);
  const unisono_nic_route& own = row->route[1];
  ASSERT_EQ(own.targets, 3);
  EXPECT_EQ(row->target[own.first], 2);
  EXPECT_EQ(row->target[own.first + 1], 3);
  EXPECT_EQ(row->target[own.first + 2], 5);
  EXPECT_EQ(unisono_nic_blocks(&*row), 8U);
  EXPECT_EQ(unisono_nic_all_arrived(&*row), 0xFFU);
}

TEST(AllgatherRow, WhatGoesToAllIsMulticastIfThatIsThere) {
  const auto ranks = addresses(8);
  GroupAddresses group;
  group.ranks = ranks;
  const Routes direct = *lower_allgather(build("direct", 8, 1));
  const auto by_clones = make_row(direct, group);
  ASSERT_TRUE(by_clones.ok()) << by_clones.error().message;
  EXPECT_EQ(by_clones->route[1].targets, 7);
  group.multicast = multicast_address(inet_addr("239.129.2.3"), htons(5000));
  const auto by_multicast = make_row(direct, group);
  ASSERT_TRUE(by_multicast.ok()) << by_multicast.error().message;
  EXPECT_EQ(by_multicast->route[1].targets, 1);
  EXPECT_EQ(by_multicast->target[by_multicast->route[1].first], UNISONO_NIC_TO_ALL);
}

TEST(AllgatherRow, HasRoomForSoManyPackets) {
  const auto ranks = addresses(40);
  GroupAddresses group;
  group.ranks = ranks;
  Routes routes;
  routes.rank = 0;
  routes.ranks = 40;
  routes.of.resize(40);
  for (int rank = 1; rank < 40; ++rank) {
    routes.of[0].targets.push_back(rank);
    routes.of[1].targets.push_back(rank);
  }
  EXPECT_EQ(make_row(routes, group).error().message,
            "the NIC of rank 0 would send 78 packets in an allgather; it sends at most 64");
}

}  // namespace
}  // namespace unisono::nic::lower_allgather_test
