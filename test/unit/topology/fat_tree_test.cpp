// SPDX-License-Identifier: BSD-3-Clause
// Trees, placements and link loads: the paper's own small examples, and properties of every tree.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "topology/fat_tree/link_loads.hpp"
#include "topology/fat_tree/placement.hpp"
#include "topology/fat_tree/tree.hpp"

namespace unisono::topology::fat_tree::fat_tree_test {
namespace {

// Links of a route by_source.
std::vector<int> route(const Tree& tree, int source, int target) {
  std::vector<int> links;
  tree.route(
      source, target, [&](Switch at) { return tree.digit(source, at.level); },
      [&](int link) { links.push_back(link); });
  return links;
}

TEST(Tree, HasAsManyNodesAndSwitchesAsThePaperSays) {
  const Tree tree = *Tree::make(4, 3);
  EXPECT_EQ(tree.nodes(), 64);
  EXPECT_EQ(tree.switches_of_level(), 16);
  EXPECT_EQ(tree.directed_links(), 2 * 3 * 64);
  EXPECT_EQ(tree.height(5, 5), 0);
  EXPECT_EQ(tree.height(4, 7), 1);
  EXPECT_EQ(tree.height(4, 8), 2);
  EXPECT_EQ(tree.height(15, 16), 3);
}

// <w, l> and <w', l+1> are connected iff all digits agree but w[n-2-l], the one of weight k^l.
TEST(Tree, ConnectsSwitchesThatDifferInOneDigit) {
  const Tree tree = *Tree::make(3, 4);
  for (int level = 0; level + 1 < tree.levels(); ++level) {
    for (int low = 0; low < tree.switches_of_level(); ++low) {
      for (int high = 0; high < tree.switches_of_level(); ++high) {
        bool agree = true;
        for (int place = 0; place < tree.levels() - 1; ++place) {
          agree &= place == level || tree.digit(low, place) == tree.digit(high, place);
        }
        ASSERT_EQ(tree.connected({low, level}, {high, level + 1}), agree);
      }
    }
  }
  EXPECT_FALSE(tree.connected({0, 0}, {0, 2}));
}

TEST(Tree, RoutesGoUpToTheLowestCommonSwitchAndDown) {
  for (const auto& [arity, levels] : {std::pair{4, 3}, {2, 4}, {3, 2}, {5, 1}}) {
    const Tree tree = *Tree::make(arity, levels);
    for (int source = 0; source < tree.nodes(); ++source) {
      for (int target = 0; target < tree.nodes(); ++target) {
        const std::vector<int> links = route(tree, source, target);
        const int height = tree.height(source, target);
        ASSERT_EQ(links.size(), static_cast<std::size_t>(2 * height));
        for (int i = 0; i < 2 * height; ++i) {
          const int link = links[static_cast<std::size_t>(i)];
          ASSERT_EQ(tree.is_up(link), i < height);
          ASSERT_EQ(tree.level_of(link), i < height ? i : 2 * height - 1 - i);
          ASSERT_LT(link, tree.directed_links());
        }
        if (height > 0) {
          ASSERT_EQ(links.front(), tree.up_link(0, source));
          ASSERT_EQ(links.back(), tree.down_link(0, target));
        }
      }
    }
  }
}

// Every link up is also a link down of the same number, and routes use all of them.
TEST(Tree, AllPairsUseAllLinks) {
  const Tree tree = *Tree::make(3, 3);
  std::set<int> used;
  for (int source = 0; source < tree.nodes(); ++source) {
    for (int target = 0; target < tree.nodes(); ++target) {
      for (const int link : route(tree, source, target)) used.insert(link);
    }
  }
  EXPECT_EQ(static_cast<int>(used.size()), tree.directed_links());
}

TEST(Tree, RefusesWhatIsNoTree) {
  EXPECT_TRUE(Tree::parse("4x3").ok());
  EXPECT_TRUE(Tree::parse("2x20").ok());
  for (const char* text : {"", "4", "x3", "4x", "4x0", "1x3", "-4x3", "4x3x2", "2x21", "4x3 ",
                           "99999999999999999999x1", "1048577x1", "1024x3"}) {
    const auto tree = Tree::parse(text);
    ASSERT_FALSE(tree.ok()) << text;
    EXPECT_FALSE(tree.error().message.empty());
  }
}

TEST(Placement, LeavesHolesOut) {
  const Tree tree = *Tree::make(4, 2);
  const Placement placement = *place_around(tree, std::vector<int>{0, 7, 7});
  EXPECT_EQ(placement.ranks(), 14);
  EXPECT_EQ(placement.leaves[0], 1);
  EXPECT_EQ(placement.leaves[6], 8);
  EXPECT_EQ(placement.holes(), (std::vector<int>{0, 7}));
  EXPECT_EQ(place_around(tree, std::vector<int>{1}, 3)->leaves, (std::vector<int>{0, 2, 3}));
  EXPECT_FALSE(place_around(tree, std::vector<int>{16}).ok());
  EXPECT_FALSE(place_around(tree, std::vector<int>{-1}).ok());
  EXPECT_FALSE(place_around(tree, std::vector<int>{3}, 16).ok());
}

TEST(LinkLoads, CountWhatTheRoutesCarry) {
  const Tree tree = *Tree::make(4, 2);
  base::Prng random(1);
  LinkLoads loads(tree);
  loads.add({0, 1}, 3, Ascent::by_source, random);
  loads.add({2, 1}, 2, Ascent::by_source, random);
  loads.add({0, 4}, 1, Ascent::by_source, random);
  EXPECT_EQ(loads.of(tree.down_link(0, 1)), 5);
  EXPECT_EQ(loads.greatest(true, 0), 4);
  EXPECT_EQ(loads.greatest(true, 1), 1);
  EXPECT_EQ(loads.greatest(), 5);
  loads.clear();
  EXPECT_EQ(loads.greatest(), 0);
}

// If all four nodes of a leaf switch send up, it has four ports for them.
TEST(LinkLoads, AdaptiveSwitchesPartMessagesGoingUp) {
  const Tree tree = *Tree::make(4, 3);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng random(seed);
    LinkLoads loads(tree);
    for (int i = 0; i < 64; ++i) loads.add({i, (i + 21) % 64}, 1, Ascent::least_loaded, random);
    for (int level = 0; level < 3; ++level) EXPECT_EQ(loads.greatest(true, level), 1);
    EXPECT_GT(loads.greatest(), 1) << "a shift by 21 is not free";
  }
}

TEST(LinkLoads, AreTheSameForTheSameSeed) {
  const Tree tree = *Tree::make(2, 4);
  const auto loads_of = [&](std::uint64_t seed) {
    base::Prng random(seed);
    LinkLoads loads(tree);
    for (int i = 0; i < 16; ++i) loads.add({i, (i + 3) % 16}, 1, Ascent::least_loaded, random);
    return std::vector<double>(loads.all().begin(), loads.all().end());
  };
  EXPECT_EQ(loads_of(7), loads_of(7));
  EXPECT_NE(loads_of(7), loads_of(8));
}

TEST(Ascent, NamesReadBack) {
  for (const Ascent ascent : {Ascent::by_source, Ascent::by_target, Ascent::least_loaded}) {
    EXPECT_EQ(ascent_from_name(ascent_name(ascent)), ascent);
  }
  EXPECT_FALSE(ascent_from_name("sideways").has_value());
}

TEST(Congestion, NamesTheTwoMessagesThatMeet) {
  const Tree tree = *Tree::make(4, 2);
  const std::vector<Flow> flows{{0, 8}, {1, 2}, {4, 9}};
  const auto met = find_congestion(tree, flows);
  ASSERT_TRUE(met.has_value());
  EXPECT_EQ(met->height, 1);
  EXPECT_EQ(met->subtree, 2);
  EXPECT_EQ(met->first, (Flow{0, 8}));
  EXPECT_EQ(met->second, (Flow{4, 9}));
}

}  // namespace
}  // namespace unisono::topology::fat_tree::fat_tree_test
