// SPDX-License-Identifier: BSD-3-Clause
// The lemmas of Kumar and Kalé (ICPADS 2004, section 4.1), each by exhaustive check on 4-ary trees
// of 16, 64, 256 and 1024 nodes, with the converses that the paper states; and the criterion behind
// them, against all ways up on small trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <set>
#include <vector>

#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "topology/fat_tree/link_loads.hpp"

namespace unisono::topology::fat_tree::fat_tree_lemma_test {
namespace {

using Map = std::vector<int>;  // map[i]: the target of node i

std::vector<Flow> flows_of(const Map& map) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < map.size(); ++i) flows.push_back({static_cast<int>(i), map[i]});
  return flows;
}

template <typename Target>
Map map_of(int nodes, const Target& target) {
  Map map(static_cast<std::size_t>(nodes));
  for (int i = 0; i < nodes; ++i) map[static_cast<std::size_t>(i)] = target(i);
  return map;
}

Map shift(int nodes, int by) {
  return map_of(nodes, [&](int i) { return (i + by) % nodes; });
}

bool is_free(const Tree& tree, const Map& map) {
  return !find_congestion(tree, flows_of(map)).has_value();
}

class Lemma : public testing::TestWithParam<int> {
 protected:
  Tree tree_ = *Tree::make(4, GetParam());
  int nodes_ = tree_.nodes();
};

TEST_P(Lemma, CyclicShiftByOneIsFree) {
  EXPECT_TRUE(is_free(tree_, shift(nodes_, 1)));
  EXPECT_TRUE(is_free(tree_, shift(nodes_, nodes_ - 1)));
}

TEST_P(Lemma, QuarterPermutationsThatKeepTheOrderAreFree) {
  std::array<int, 4> quarters{0, 1, 2, 3};
  const int size = nodes_ / 4;
  do {
    const Map map = map_of(nodes_, [&](int i) {
      return quarters[static_cast<std::size_t>(i / size)] * size + i % size;
    });
    EXPECT_TRUE(is_free(tree_, map));
  } while (std::ranges::next_permutation(quarters).found);
}

// The order matters: a quarter permutation that mixes the nodes of leaf switches is not free.
TEST_P(Lemma, QuarterPermutationsThatBreakTheOrderMayContend) {
  if (GetParam() < 3) return;  // a quarter of 16 nodes is one leaf switch: any order is kept
  const int size = nodes_ / 4;
  const Map map = map_of(nodes_, [&](int i) {
    const int within = i % size;
    return (i / size + 1) % 4 * size + within % 4 * (size / 4) + within / 4;
  });
  EXPECT_FALSE(is_free(tree_, map));
}

// A permutation that maps the tree to itself permutes the children of each switch.
Map random_tree_map(const Tree& tree, base::Prng& random) {
  Map map(1, 0);
  for (int height = tree.levels(); height > 0; --height) {
    Map finer;
    for (const int target : map) {
      Map children(static_cast<std::size_t>(tree.arity()));
      std::iota(children.begin(), children.end(), target * tree.arity());
      std::shuffle(children.begin(), children.end(), random);
      finer.insert(finer.end(), children.begin(), children.end());
    }
    map = finer;
  }
  return map;
}

TEST_P(Lemma, PermutationsThatMapTheTreeToItselfAreFree) {
  base::Prng random(1);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(is_free(tree_, random_tree_map(tree_, random)));
}

// All orders of the children of a switch.
std::vector<std::vector<int>> all_orders(int arity) {
  std::vector<int> order(static_cast<std::size_t>(arity));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int>> orders;
  do {
    orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

// Every permutation that maps the tree to itself: every order of the children of every switch.
class EveryTreeMap {
 public:
  explicit EveryTreeMap(const Tree& tree) : tree_(tree), orders_(all_orders(tree.arity())) {
    std::size_t switches = 0;
    for (int level = 0; level < tree.levels(); ++level) {
      switches += static_cast<std::size_t>(tree.power(level));
    }
    order_of_.resize(switches);
  }

  const Map& map() {
    map_.assign(1, 0);
    std::size_t at = 0;
    while (static_cast<int>(map_.size()) < tree_.nodes()) {
      finer_.clear();
      for (const int target : map_) {
        for (const int child : orders_[order_of_[at]]) {
          finer_.push_back(target * tree_.arity() + child);
        }
        ++at;
      }
      std::swap(map_, finer_);
    }
    return map_;
  }
  // False after the last one.
  bool next() {
    for (std::size_t& order : order_of_) {
      if (++order < orders_.size()) return true;
      order = 0;
    }
    return false;
  }

 private:
  Tree tree_;
  std::vector<std::vector<int>> orders_;
  std::vector<std::size_t> order_of_;  // by switch, from the root on
  Map map_, finer_;
};

constexpr std::int64_t kUnderSanitizers = 100'000;

void expect_tree_maps_are_free(int arity, int levels, std::int64_t expected) {
  const Tree tree = *Tree::make(arity, levels);
  EveryTreeMap each(tree);
  std::vector<Flow> flows(static_cast<std::size_t>(tree.nodes()));
  std::int64_t maps = 0;
  do {
    const Map& map = each.map();
    for (std::size_t i = 0; i < flows.size(); ++i) flows[i] = {static_cast<int>(i), map[i]};
    ASSERT_FALSE(find_congestion(tree, flows)) << testing::PrintToString(map);
    ++maps;
  } while (each.next() && (!harness::kSanitized || maps < kUnderSanitizers));
  EXPECT_EQ(maps, harness::kSanitized ? std::min(expected, kUnderSanitizers) : expected);
}

TEST(EveryTreeMap, OfSmallTreesIsFree) {
  expect_tree_maps_are_free(2, 2, 8);
  expect_tree_maps_are_free(2, 3, 128);
  expect_tree_maps_are_free(3, 2, 1296);
}

TEST(EveryTreeMap, IsAnotherOne) {
  std::set<Map> maps;
  EveryTreeMap each(*Tree::make(3, 2));
  do {
    Map sorted = each.map();
    EXPECT_TRUE(maps.insert(sorted).second);
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, shift(9, 0));
  } while (each.next());
}

TEST(EveryTreeMap, OfSixteenNodesIsFree) { expect_tree_maps_are_free(4, 2, 7'962'624); }

TEST_P(Lemma, HypercubeExchangeIsFree) {
  for (int bit = 1; bit < nodes_; bit *= 2) {
    EXPECT_TRUE(is_free(tree_, map_of(nodes_, [&](int i) { return i ^ bit; })));
  }
}

TEST_P(Lemma, PrefixSendIsFreeIfTheNumberOfRanksIsAPowerOfTwo) {
  for (int ranks = 2; ranks <= nodes_; ranks *= 2) {
    for (int step = 1; step < ranks; ++step) {
      EXPECT_TRUE(is_free(tree_, map_of(ranks, [&](int i) { return i ^ step; })));
    }
  }
}

// ... and only then: otherwise some step is no permutation of the ranks. If all ranks send in such
// a step, to the remainder by the number of ranks, two messages go to one node.
TEST_P(Lemma, PrefixSendContendsIfTheNumberOfRanksIsNoPowerOfTwo) {
  for (int ranks = 3; ranks <= nodes_; ++ranks) {
    if (std::has_single_bit(static_cast<unsigned>(ranks))) continue;
    bool contends = false;
    for (int step = 1; step < ranks && !contends; ++step) {
      contends = !is_free(tree_, map_of(ranks, [&](int i) { return (i ^ step) % ranks; }));
    }
    EXPECT_TRUE(contends) << ranks << " ranks";
  }
}

TEST_P(Lemma, CyclicShiftIsFreeExactlyForOneToThreeTimesAPowerOfFour) {
  std::set<int> free_shifts;
  for (int unit = 1; unit < nodes_; unit *= 4) {
    for (int a = 1; a <= 3; ++a) {
      free_shifts.insert(a * unit);
      free_shifts.insert(nodes_ - a * unit);
    }
  }
  for (int by = 1; by < nodes_; ++by) {
    EXPECT_EQ(is_free(tree_, shift(nodes_, by)), free_shifts.contains(by)) << "shift by " << by;
  }
}

// Deterministic routes fulfil the promise of the criterion, and adaptive ones as well.
TEST_P(Lemma, NoLinkOfAFreePermutationHasTwoMessages) {
  base::Prng random(2);
  LinkLoads loads(tree_);
  for (int unit = 1; unit < nodes_; unit *= 4) {
    for (const Ascent ascent : {Ascent::by_source, Ascent::by_target, Ascent::least_loaded}) {
      loads.clear();
      for (const Flow& flow : flows_of(shift(nodes_, unit))) loads.add(flow, 1, ascent, random);
      EXPECT_EQ(loads.greatest(), 1) << unit << ' ' << ascent_name(ascent);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FourAry, Lemma, testing::Values(2, 3, 4, 5), [](const auto& each) {
  return std::to_string(Tree::make(4, each.param)->nodes()) + "nodes";
});

// All ways up without two messages in one link: at each switch each injective choice of ports.
class EveryAscent {
 public:
  EveryAscent(const Tree& tree, const Map& map) : tree_(tree) {
    for (const Flow& flow : flows_of(map)) {
      if (flow.source == flow.target) continue;
      flows_.push_back(flow);
      at_.push_back(tree.leaf_switch(flow.source));
    }
  }

  // Whether two messages meet in a link going down in any of them.
  bool can_meet() { return from(0, 0); }

 private:
  // Chooses the port of flow i from `level` to the next, then those of the following flows.
  bool from(std::size_t i, int level) {
    if (level == tree_.levels() - 1) return meet();
    if (i == flows_.size()) return from(0, level + 1);
    if (tree_.height(flows_[i].source, flows_[i].target) - 1 <= level) return from(i + 1, level);
    const Switch before = at_[i];
    for (int port = 0; port < tree_.arity(); ++port) {
      const int link = before.word * tree_.arity() + port;
      if (!taken_.insert({level, link}).second) continue;
      at_[i] = tree_.above(before, port);
      const bool met = from(i + 1, level);
      taken_.erase({level, link});
      at_[i] = before;
      if (met) return true;
    }
    return false;
  }

  bool meet() const {
    std::set<int> links;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      bool met = false;
      const int chosen = at_[i].word;
      tree_.route(
          flows_[i].source, flows_[i].target,
          [&](Switch at) { return tree_.digit(chosen, at.level); },
          [&](int link) { met |= !tree_.is_up(link) && !links.insert(link).second; });
      if (met) return true;
    }
    return false;
  }

  Tree tree_;
  std::vector<Flow> flows_;
  std::vector<Switch> at_;
  std::set<std::pair<int, int>> taken_;
};

TEST(Criterion, AgreesWithAllWaysUpOfPermutationsOfSmallBinaryTrees) {
  const Tree tree = *Tree::make(2, 2);
  Map map{0, 1, 2, 3};
  do {
    EXPECT_EQ(is_free(tree, map), !EveryAscent(tree, map).can_meet());
  } while (std::ranges::next_permutation(map).found);
  const Tree deeper = *Tree::make(2, 3);
  base::Prng random(3);
  Map eight(8);
  std::iota(eight.begin(), eight.end(), 0);
  int free_ones = 0;
  for (int i = 0; i < 400; ++i) {
    std::shuffle(eight.begin(), eight.end(), random);
    if (i % 8 == 0) eight = random_tree_map(deeper, random);
    const bool free = is_free(deeper, eight);
    free_ones += free ? 1 : 0;
    EXPECT_EQ(free, !EveryAscent(deeper, eight).can_meet()) << testing::PrintToString(eight);
  }
  EXPECT_GT(free_ones, 50);
}

TEST(Criterion, AgreesWithAllWaysUpOfCyclicShiftsOfATernaryTree) {
  const Tree tree = *Tree::make(3, 2);
  for (int by = 1; by < 9; ++by) {
    EXPECT_EQ(is_free(tree, shift(9, by)), !EveryAscent(tree, shift(9, by)).can_meet()) << by;
  }
}

}  // namespace
}  // namespace unisono::topology::fat_tree::fat_tree_lemma_test
