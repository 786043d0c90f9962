// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of trees, each pattern alone, exhaustively for small P against its definition
// written down a second time in the plainest way.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithm/pattern/double_tree.hpp"
#include "algorithm/pattern/fan_in.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/pattern/in_order.hpp"

namespace unisono::algorithm::pattern::tree_pattern_test {
namespace {

constexpr int kMostRanks = 70;

int ceil_log(int base, int value) {
  int log = 0;
  for (std::int64_t power = 1; power < value; power *= base) ++log;
  return log;
}

// The definition of Moody et al., appendix A, with root 0.
struct Reference {
  int parent = -1;
  int child_number = 0;
  std::vector<int> receives;  // for each phase in which the rank is a parent
};

Reference reference(int ranks, int degree, int rank) {
  Reference result;
  int phase = 0;
  for (int stride = 1; stride < ranks; stride *= degree, ++phase) {
    if ((rank / stride) % degree != 0) {
      result.parent = rank - rank % (stride * degree);
      result.child_number = phase * (degree - 1) + (rank / stride) % degree - 1;
      return result;
    }
    int receives = 0;
    for (int i = 1; i < degree; ++i) receives += rank + i * stride < ranks ? 1 : 0;
    result.receives.push_back(receives);
  }
  return result;
}

void expect_reference(const FnomialTree& tree, int ranks, int degree, int root, int shifted) {
  const Reference expected = reference(ranks, degree, shifted);
  const int rank = (shifted + root) % ranks;
  const TreeNode node = tree.node(rank);
  const int parent = expected.parent < 0 ? -1 : (expected.parent + root) % ranks;
  ASSERT_EQ(node.parent, parent);
  ASSERT_EQ(node.child_number, expected.child_number);
  int children = 0;
  for (int phase = 0; phase < tree.phases(); ++phase) {
    const auto at = static_cast<std::size_t>(phase);
    const int receives = at < expected.receives.size() ? expected.receives[at] : 0;
    ASSERT_EQ(tree.receives(rank, phase), receives);
    children += receives;
  }
  ASSERT_EQ(node.children, children);
  if (parent >= 0) {
    ASSERT_EQ(tree.child(parent, node.child_number), rank);
  }
}

TEST(Fnomial, EqualsTheDefinition) {
  for (int degree = 2; degree <= 8; ++degree) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (int root = 0; root < ranks; ++root) {
        const FnomialTree tree(ranks, degree, root);
        ASSERT_EQ(tree.phases(), ceil_log(degree, ranks));
        for (int shifted = 0; shifted < ranks; ++shifted) {
          SCOPED_TRACE(testing::Message() << "degree " << degree << " ranks " << ranks << " root "
                                          << root << " shifted rank " << shifted);
          ASSERT_NO_FATAL_FAILURE(expect_reference(tree, ranks, degree, root, shifted));
        }
      }
    }
  }
}

// The ranks of a subtree, in the order in which its vectors are combined.
void combined(const FnomialTree& tree, int rank, std::vector<int>& order) {
  order.push_back(rank);
  for (int child = 0; child < tree.node(rank).children; ++child) {
    combined(tree, tree.child(rank, child), order);
  }
}

TEST(Fnomial, ChildrenInTheOrderOfTheirNumbersKeepTheOrderOfRanks) {
  for (int degree = 2; degree <= 8; ++degree) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (const int root : {0, ranks / 2, ranks - 1}) {
        std::vector<int> order;
        combined(FnomialTree(ranks, degree, root), root, order);
        ASSERT_EQ(static_cast<int>(order.size()), ranks);
        for (int i = 0; i < ranks; ++i) {
          ASSERT_EQ(order[static_cast<std::size_t>(i)], (root + i) % ranks);
        }
      }
    }
  }
}

TEST(Fnomial, ASubtreeIsARunOfRanks) {
  for (int degree = 2; degree <= 8; ++degree) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (const int root : {0, ranks / 2, ranks - 1}) {
        const FnomialTree tree(ranks, degree, root);
        for (int rank = 0; rank < ranks; ++rank) {
          std::vector<int> order;
          combined(tree, rank, order);
          ASSERT_EQ(tree.subtree(rank), static_cast<int>(order.size()));
          for (int i = 0; i < tree.subtree(rank); ++i) {
            ASSERT_EQ(order[static_cast<std::size_t>(i)], (rank + i) % ranks);
          }
        }
      }
    }
  }
}

std::vector<int> parents(int ranks, int degree) {
  const FnomialTree tree(ranks, degree);
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(tree.node(rank).parent);
  return result;
}

// Moody et al., figures 5 and 6.
TEST(Fnomial, SixteenRanks) {
  EXPECT_EQ(parents(16, 2), (std::vector{-1, 0, 0, 2, 0, 4, 4, 6, 0, 8, 8, 10, 8, 12, 12, 14}));
  EXPECT_EQ(parents(16, 3), (std::vector{-1, 0, 0, 0, 3, 3, 0, 6, 6, 0, 9, 9, 9, 12, 12, 9}));
  EXPECT_EQ(parents(16, 4), (std::vector{-1, 0, 0, 0, 0, 4, 4, 4, 0, 8, 8, 8, 0, 12, 12, 12}));
  EXPECT_EQ(parents(16, 16), (std::vector{-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Fnomial, HugeGroupsDoNotOverflow) {
  constexpr int kRanks = 2147483647;
  const FnomialTree flat(kRanks, kRanks);
  EXPECT_EQ(flat.node(0).children, kRanks - 1);
  EXPECT_EQ(flat.node(kRanks - 1).parent, 0);
  EXPECT_EQ(flat.child(0, kRanks - 2), kRanks - 1);
  const FnomialTree binomial(kRanks, 2);
  EXPECT_EQ(binomial.phases(), 31);
  EXPECT_EQ(binomial.node(1 << 30).parent, 0);
  EXPECT_EQ(binomial.child(0, 30), 1 << 30);
  const FnomialTree odd(kRanks, 46341, kRanks - 1);  // degree^2 is just beyond an int
  EXPECT_EQ(odd.node(kRanks - 2).parent, kRanks - 1 - 1 - (kRanks - 1) % 46341);
}

TEST(FanIn, TakesAtMostSoManyMessagesALevel) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int fan_in = 1; fan_in <= ranks + 1; ++fan_in) {
      const FnomialTree tree = fan_in_tree(ranks, fan_in);
      ASSERT_EQ(tree.phases(), ceil_log(fan_in + 1, ranks)) << ranks << " ranks, " << fan_in;
      for (int rank = 0; rank < ranks; ++rank) {
        for (int level = 0; level < tree.phases(); ++level) {
          ASSERT_LE(tree.receives(rank, level), fan_in);
        }
      }
      if (fan_in >= ranks - 1) {
        ASSERT_EQ(tree.node(0).children, ranks - 1);
      }
    }
  }
}

TEST(DoubleTree, EachReachesEveryoneAndNobodyIsInnerTwice) {
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    for (const int root : {0, 1, ranks / 2, ranks - 1}) {
      const DoubleTree trees(ranks, root);
      std::vector<int> inner(static_cast<std::size_t>(ranks), 0);
      for (const int tree : {0, 1}) {
        int deepest = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const BinaryNode node = trees.node(tree, rank);
          ASSERT_EQ(node.parent < 0, rank == root);
          for (const int child : {node.left, node.right}) {
            if (child < 0) continue;
            ASSERT_EQ(trees.node(tree, child).parent, rank) << ranks << " root " << root;
          }
          const bool is_inner = node.left >= 0 || node.right >= 0;
          if (rank != root && is_inner) ++inner[static_cast<std::size_t>(rank)];
          int depth = 0;
          for (int at = rank; at != root && depth <= ranks; ++depth) {
            const BinaryNode above = trees.node(tree, trees.node(tree, at).parent);
            ASSERT_TRUE(above.left == at || above.right == at);
            at = trees.node(tree, at).parent;
          }
          deepest = std::max(deepest, depth);
        }
        int floor_log = 0;
        while ((2 << floor_log) <= ranks - 1) ++floor_log;
        ASSERT_EQ(deepest, floor_log + 1) << ranks;
      }
      for (const int count : inner) ASSERT_LE(count, 1) << ranks << " root " << root;
    }
  }
}

TEST(DoubleTree, HugeGroupsDoNotOverflow) {
  constexpr int kRanks = 2147483647;
  const DoubleTree trees(kRanks, 5);
  for (const int tree : {0, 1}) {
    const int top = trees.node(tree, 5).left;
    EXPECT_EQ(trees.node(tree, top).parent, 5);
    EXPECT_EQ(trees.node(tree, trees.node(tree, top).right).parent, top);
  }
}

// From left to right: the ranks before a node, the node, the ranks after it.
template <typename Tree>
void in_order(const Tree& tree, int at, int depth, std::vector<int>& order, int& deepest) {
  const InOrderNode node = tree.node(at);
  deepest = std::max(deepest, depth);
  for (const int child : {node.left, node.right}) {
    if (child >= 0) {
      ASSERT_EQ(tree.node(child).parent, at);
    }
  }
  if (node.left >= 0) in_order(tree, node.left, depth + 1, order, deepest);
  order.push_back(at);
  if (node.right >= 0) in_order(tree, node.right, depth + 1, order, deepest);
}

template <typename Tree>
int depth_of_ordered(const Tree& tree, int ranks) {
  std::vector<int> order;
  int deepest = 0;
  EXPECT_EQ(tree.node(tree.top()).parent, -1);
  in_order(tree, tree.top(), 0, order, deepest);
  EXPECT_EQ(static_cast<int>(order.size()), ranks);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  return deepest;
}

TEST(InOrder, TreesKeepTheOrderOfRanks) {
  for (int ranks = 1; ranks <= 200; ++ranks) {
    int floor_log = 0;
    while ((2 << floor_log) <= ranks) ++floor_log;
    ASSERT_EQ(depth_of_ordered(InOrderBinaryTree(ranks), ranks), floor_log);
    for (const int top : {0, ranks / 3, ranks - 1}) {
      ASSERT_EQ(depth_of_ordered(InOrderChain(ranks, top), ranks), std::max(top, ranks - 1 - top));
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::pattern::tree_pattern_test
