// SPDX-License-Identifier: BSD-3-Clause
#include "topology/host_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace unisono::topology::host_map_test {
namespace {

HostMap of(const std::vector<int>& labels) { return HostMap::of_labels(labels); }

TEST(HostMap, OneHostIsOneHowEverManyRanksItHas) {
  for (const HostMap& map : {HostMap(), of({}), of({7, 7, 7}), HostMap::together(3)}) {
    EXPECT_FALSE(map.given());
    EXPECT_EQ(map, HostMap());
    EXPECT_EQ(map.hosts(), 1);
    EXPECT_EQ(map.first(0), 0);
    EXPECT_EQ(map.of(2), 0);
    EXPECT_EQ(map.place(2), 2);
    EXPECT_TRUE(map.share(0, 2));
    EXPECT_TRUE(map.are_neighbours());
    EXPECT_FALSE(map.are_alone());
  }
  EXPECT_EQ(HostMap().ranks(), 0);
  EXPECT_EQ(of({7, 7, 7}).ranks(), 3);
  EXPECT_TRUE(std::ranges::equal(of({7, 7, 7}).members(0), std::vector{0, 1, 2}));
}

TEST(HostMap, RanksApartAreTheirOwnHosts) {
  const HostMap map = of({4, 2, 9});
  EXPECT_EQ(map, HostMap::apart(3));
  EXPECT_TRUE(map.are_alone());
  EXPECT_EQ(map.hosts(), 3);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(map.of(r), r);
    EXPECT_EQ(map.place(r), 0);
    EXPECT_EQ(map.first(r), r);
    EXPECT_TRUE(std::ranges::equal(map.members(r), std::vector{r}));
  }
  EXPECT_FALSE(map.share(0, 1));
}

TEST(HostMap, NumbersHostsByTheirLowestRanks) {
  const HostMap map = of({9, 4, 9, -1, 4});
  EXPECT_EQ(map.ranks(), 5);
  EXPECT_EQ(map.hosts(), 3);
  const std::vector<int> hosts = {0, 1, 0, 2, 1}, places = {0, 0, 1, 0, 1};
  for (int r = 0; r < 5; ++r) {
    EXPECT_EQ(map.of(r), hosts[static_cast<std::size_t>(r)]);
    EXPECT_EQ(map.place(r), places[static_cast<std::size_t>(r)]);
  }
  EXPECT_TRUE(map.share(1, 4));
  EXPECT_FALSE(map.share(0, 1));
  EXPECT_TRUE(std::ranges::equal(map.firsts(), std::vector{0, 1, 3}));
  EXPECT_TRUE(std::ranges::equal(map.members(0), std::vector{0, 2}));
  EXPECT_TRUE(std::ranges::equal(map.members(1), std::vector{1, 4}));
  EXPECT_TRUE(std::ranges::equal(map.members(2), std::vector{3}));
  EXPECT_EQ(map, of({0, 1, 0, 2, 1}));
  EXPECT_NE(map, of({0, 1, 0, 1, 1}));
  EXPECT_NE(map, HostMap());
}

TEST(HostMap, KnowsNeighbours) {
  EXPECT_TRUE(of({5, 5, 3, 3, 4}).are_neighbours());
  EXPECT_FALSE(of({5, 3, 5}).are_neighbours());
  EXPECT_TRUE(of({1, 2, 3}).are_alone());
  EXPECT_FALSE(of({1, 2, 2}).are_alone());
}

}  // namespace
}  // namespace unisono::topology::host_map_test
