// SPDX-License-Identifier: BSD-3-Clause
#include "topology/host_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace unisono::topology {
namespace {

HostMap of(const std::vector<int>& labels) { return HostMap::of_labels(labels); }

TEST(HostMap, OneHostIsNone) {
  EXPECT_FALSE(HostMap().given());
  EXPECT_FALSE(of({}).given());
  EXPECT_FALSE(of({7, 7, 7}).given());
  EXPECT_EQ(of({7, 7, 7}), HostMap());
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
}  // namespace unisono::topology
