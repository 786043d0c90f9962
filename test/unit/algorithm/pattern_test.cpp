// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of peers, each pattern alone, exhaustively for small P against its definition
// written down a second time in the plainest way.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "algorithm/block_run.hpp"
#include "algorithm/many_to_many/receivers.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/cube.hpp"
#include "algorithm/pattern/dissemination.hpp"
#include "algorithm/pattern/distance_bits.hpp"
#include "algorithm/pattern/fan_in.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/pattern/mesh.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::pattern {
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
  std::vector<int> receives;  // per phase, of the phases in which the rank is a parent
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

TEST(FoldedCube, EveryRankIsInsideOrPlayedByItsNeighbour) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const FoldedCube cube(ranks);
    ASSERT_EQ(cube.size(), 1 << cube.dimensions());
    ASSERT_LE(cube.size(), ranks);
    ASSERT_GT(cube.size() * 2, ranks);
    std::vector<int> inside;
    for (int rank = 0; rank < ranks; ++rank) {
      const int partner = cube.fold_partner(rank);
      if (cube.outside(rank)) {
        ASSERT_EQ(partner, rank - 1);
      } else {
        ASSERT_EQ(cube.rank_at(cube.position(rank)), rank);
        ASSERT_EQ(cube.position(rank), static_cast<int>(inside.size()));
        inside.push_back(rank);
      }
      if (partner >= 0) {
        ASSERT_EQ(cube.fold_partner(partner), rank);
        ASSERT_NE(cube.outside(partner), cube.outside(rank));
      }
    }
    ASSERT_EQ(static_cast<int>(inside.size()), cube.size());
  }
}

TEST(FoldedCube, ExchangeReachesEveryRankAndSubcubesAreConsecutive) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const FoldedCube cube(ranks);
    std::vector<std::set<int>> known(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      auto& own = known[static_cast<std::size_t>(rank)];
      own.insert(rank);
      if (!cube.outside(rank) && cube.fold_partner(rank) >= 0) own.insert(cube.fold_partner(rank));
    }
    for (int d = 0; d <= cube.dimensions(); ++d) {
      for (int rank = 0; rank < ranks; ++rank) {
        if (cube.outside(rank)) continue;
        const auto range = cube.subcube(cube.position(rank), d);
        std::set<int> consecutive;
        for (int i = 0; i < range.count; ++i) consecutive.insert(range.first + i);
        ASSERT_EQ(known[static_cast<std::size_t>(rank)], consecutive) << ranks << " ranks";
      }
      if (d == cube.dimensions()) break;
      const auto before = known;
      for (int rank = 0; rank < ranks; ++rank) {
        if (cube.outside(rank)) continue;
        const int partner = cube.partner(rank, d);
        ASSERT_EQ(cube.partner(partner, d), rank);
        ASSERT_EQ(cube.is_upper(rank, d), rank > partner);
        const auto& met = before[static_cast<std::size_t>(partner)];
        known[static_cast<std::size_t>(rank)].insert(met.begin(), met.end());
      }
    }
    ASSERT_EQ(static_cast<int>(known[0].size()), ranks);
  }
}

TEST(Dissemination, EveryoneHearsOfEveryone) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    ASSERT_EQ(dissemination_steps(ranks), ceil_log(2, ranks));
    std::vector<std::set<int>> known(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) known[static_cast<std::size_t>(rank)] = {rank};
    for (int step = 0; step < dissemination_steps(ranks); ++step) {
      const auto before = known;
      for (int rank = 0; rank < ranks; ++rank) {
        const int target = dissemination_target(ranks, rank, step);
        ASSERT_EQ(target, (rank + (1 << step)) % ranks);
        ASSERT_EQ(dissemination_source(ranks, target, step), rank);
        const auto& heard = before[static_cast<std::size_t>(rank)];
        known[static_cast<std::size_t>(target)].insert(heard.begin(), heard.end());
      }
    }
    for (const auto& heard : known) ASSERT_EQ(static_cast<int>(heard.size()), ranks);
  }
}

TEST(Ring, WhatComesInLeavesInTheNextStep) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(ring_next(ranks, rank), (rank + 1) % ranks);
      ASSERT_EQ(ring_previous(ranks, ring_next(ranks, rank)), rank);
      ASSERT_EQ(ring_block(ranks, rank, 0), rank);
      std::set<int> passed;
      for (int step = 0; step < ranks; ++step) {
        passed.insert(ring_block(ranks, rank, step));
        if (step + 1 < ranks) {
          ASSERT_EQ(ring_block(ranks, ring_next(ranks, rank), step + 1),
                    ring_block(ranks, rank, step));
        }
      }
      ASSERT_EQ(static_cast<int>(passed.size()), ranks);
    }
  }
}

TEST(Ring, ShiftsBothWays) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (int distance = 1 - ranks; distance < ranks; ++distance) {
        ASSERT_EQ(ring_shift(ranks, rank, distance), (rank + distance + ranks) % ranks);
      }
    }
  }
  constexpr int kRanks = 2147483647;
  EXPECT_EQ(ring_shift(kRanks, kRanks - 1, kRanks - 1), kRanks - 2);
  EXPECT_EQ(ring_shift(kRanks, 0, 1 - kRanks), 1);
}

TEST(Mesh, IsTheNextSquareWithoutEmptyRows) {
  for (int ranks = 1; ranks <= 200; ++ranks) {
    const Mesh mesh(ranks);
    ASSERT_GE(mesh.columns() * mesh.columns(), ranks);
    ASSERT_LT((mesh.columns() - 1) * (mesh.columns() - 1), ranks);
    int standing = 0;
    for (int row = 0; row < mesh.rows(); ++row) {
      ASSERT_GT(mesh.row_size(row), 0);
      standing += mesh.row_size(row);
    }
    ASSERT_EQ(standing, ranks);
    int columns = 0;
    for (int column = 0; column < mesh.columns(); ++column) columns += mesh.column_size(column);
    ASSERT_EQ(columns, ranks);
  }
  EXPECT_EQ(Mesh(2147483647).columns(), 46341);
}

// After the row step every column has all blocks, each once.
TEST(Mesh, EveryColumnGetsEveryBlock) {
  for (int ranks = 1; ranks <= 200; ++ranks) {
    const Mesh mesh(ranks);
    std::vector<std::multiset<int>> column(static_cast<std::size_t>(mesh.columns()));
    std::vector<std::multiset<int>> played(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      for (int other = 0; other < mesh.columns(); ++other) {
        column[static_cast<std::size_t>(other)].insert(rank);
        if (other == mesh.column(rank)) continue;
        const int peer = mesh.peer(rank, other);
        ASSERT_TRUE(peer >= 0 && peer < ranks) << ranks;
        ASSERT_EQ(mesh.column(peer), other);
        if (mesh.row(peer) != mesh.row(rank)) played[static_cast<std::size_t>(peer)].insert(rank);
      }
    }
    for (const auto& blocks : column) ASSERT_EQ(static_cast<int>(blocks.size()), ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::multiset<int> listed;
      for (int i = 0; i < mesh.played(rank); ++i) listed.insert(mesh.played_rank(rank, i));
      ASSERT_EQ(listed, played[static_cast<std::size_t>(rank)]) << ranks << " rank " << rank;
      ASSERT_LE(listed.size(), 2u);
    }
  }
}

// Kumar and Kalé, figure 1: 14 ranks; rank 12 sends to 2 and 3 for the holes.
TEST(Mesh, FourteenRanks) {
  const Mesh mesh(14);
  EXPECT_EQ(mesh.rows(), 4);
  EXPECT_EQ(mesh.columns(), 4);
  EXPECT_EQ(mesh.peer(12, 1), 13);
  EXPECT_EQ(mesh.peer(12, 2), 2);
  EXPECT_EQ(mesh.peer(12, 3), 3);
  EXPECT_EQ(mesh.peer(13, 2), 6);
  EXPECT_EQ(mesh.peer(13, 3), 7);
}

TEST(Blocks, CoverTheElementsOnceAndDifferByOneAtMost) {
  for (int count = 0; count <= 3 * kMostRanks; ++count) {
    for (int blocks = 1; blocks <= kMostRanks; ++blocks) {
      const Blocks partition(count, blocks);
      std::int64_t end = 0;
      for (int block = 0; block < blocks; ++block) {
        ASSERT_EQ(partition.offset(block), end);
        ASSERT_EQ(partition.count(block), count / blocks + (block < count % blocks ? 1 : 0));
        end += partition.count(block);
      }
      ASSERT_EQ(end, count);
    }
  }
}

TEST(Piece, HalvesCoverItAndTheLowerOneIsTheLonger) {
  for (std::int64_t count = 0; count <= 2 * kMostRanks; ++count) {
    const Piece piece{5, count};
    const Piece low = piece.lower_half();
    const Piece high = piece.upper_half();
    ASSERT_EQ(low.offset, 5);
    ASSERT_EQ(high.offset, 5 + low.count);
    ASSERT_EQ(low.count + high.count, count);
    ASSERT_EQ(low.count - high.count, count % 2);
  }
}

TEST(BlockRun, IsTheBlocksOfNeighboursAroundTheCircle) {
  schedule::Shape shape{.collective = schedule::Collective::gather, .ranks = 5};
  shape.blocks = *schedule::Blocks::of_ranks({3, 0, 2, 1, 4});
  for (int first = 0; first < 5; ++first) {
    for (int ranks = 0; ranks <= 5; ++ranks) {
      std::vector<std::int64_t> elements, expected;
      const BlockRun run = block_run(shape, first, ranks);
      for (const schedule::Block& part : {run.upper, run.lower}) {
        for (std::int64_t i = 0; i < part.count; ++i) elements.push_back(part.offset + i);
      }
      for (int i = 0; i < ranks; ++i) {
        const schedule::Block block = schedule::block(shape, (first + i) % 5);
        for (std::int64_t e = 0; e < block.count; ++e) expected.push_back(block.offset + e);
      }
      ASSERT_EQ(elements, expected) << "first " << first << " ranks " << ranks;
      ASSERT_EQ(run.count(), static_cast<std::int64_t>(expected.size()));
      if (run.is_one_part()) {
        ASSERT_EQ(run.only_part().count, run.count());
      }
    }
  }
}

TEST(DistanceBits, AMessageHoldsTheDistancesWithTheBitInOrder) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int step = 0; (1 << step) < ranks; ++step) {
      int place = 0;
      for (int distance = 0; distance < ranks; ++distance) {
        ASSERT_EQ(distances_with_bit(distance, step), place);
        place += (distance >> step) & 1;
      }
      ASSERT_EQ(distances_with_bit(ranks, step), place);
    }
  }
  EXPECT_EQ(distances_with_bit(2147483647, 30), 1073741823);
}

TEST(DistanceBits, ARunIsWhatCameNextToEachOther) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int step = 0; (1 << step) < ranks; ++step) {
      for (int first = 1 << step; first < ranks; ++first) {
        if (((first >> step) & 1) == 0) continue;
        const int last = last_move_before(first, step);
        ASSERT_EQ(last,
                  static_cast<int>(std::bit_width(static_cast<unsigned>(first % (1 << step)))) - 1);
        // Only from where a run begins: at the first distance that moved last in that step.
        if (last >= 0 && first % (1 << last) != 0) continue;
        const int end = run_end(ranks, first, step);
        for (int distance = first; distance < end; ++distance) {
          ASSERT_EQ((distance >> step) & 1, 1);
          ASSERT_EQ(last_move_before(distance, step), last);
          if (last < 0) continue;
          ASSERT_EQ(distances_with_bit(distance, last),
                    distances_with_bit(first, last) + distance - first);
        }
      }
    }
  }
}

TEST(Receivers, FollowARankAroundTheCircle) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (int mask = 1; mask < 1 << ranks; ++mask) {
      schedule::Shape shape{.collective = schedule::Collective::many_to_many, .ranks = ranks};
      std::vector<bool> marks;
      for (int rank = 0; rank < ranks; ++rank) marks.push_back(((mask >> rank) & 1) != 0);
      shape.blocks = *schedule::Blocks::of_ranks(
          std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 1), marks);
      const many_to_many::Receivers receivers(shape);
      for (int from = 0; from < ranks; ++from) {
        int number = 0;
        for (int step = 1; step <= ranks; ++step) {
          const int rank = (from + step) % ranks;
          ASSERT_EQ(receivers.contains(rank), schedule::receives(shape, rank));
          if (!receivers.contains(rank)) continue;
          ASSERT_EQ(receivers.number_after(from, rank), number);
          ASSERT_EQ(receivers.after(from, number), rank);
          if (number == 0) {
            ASSERT_EQ(receivers.at(receivers.position((from + 1) % ranks)), rank);
          }
          ++number;
        }
        ASSERT_EQ(number, receivers.count());
      }
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::pattern
