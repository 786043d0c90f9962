// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of peers that are no trees (tree_pattern_test.cpp), each pattern alone,
// exhaustively for small P against its definition written down a second time in the plainest way.
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
#include "algorithm/pattern/grid.hpp"
#include "algorithm/pattern/mesh.hpp"
#include "algorithm/pattern/paired.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::pattern::pattern_test {
namespace {

constexpr int kMostRanks = 70;

int ceil_log(int base, int value) {
  int log = 0;
  for (std::int64_t power = 1; power < value; power *= base) ++log;
  return log;
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

// With k targets a step a rank hears from all ranks, and in the last step from none twice.
TEST(Dissemination, EveryoneHearsOfEveryoneFromSeveral) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int k = 1; k <= ranks; ++k) {
      int reach = 1;  // ranks heard from: itself and the reach - 1 ranks below
      for (int stride = 1; stride < ranks; stride *= k + 1) {
        const int peers = dissemination_peers(ranks, stride, k);
        ASSERT_EQ(reach, stride);
        ASSERT_LE(peers, k);
        ASSERT_LT(peers * stride, ranks);
        reach = (peers + 1) * stride;
      }
      ASSERT_GE(reach, ranks) << k << " of " << ranks;
    }
  }
}

TEST(PairedRanks, EveryPositionHasOneLeader) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int positions = (ranks + 1) / 2; positions <= ranks; ++positions) {
      for (int wanted = 0; wanted < ranks; ++wanted) {
        const PairedRanks paired(ranks, positions, wanted);
        ASSERT_TRUE(paired.leads(wanted));
        ASSERT_EQ(paired.first(positions), ranks);
        std::vector<int> leaders(static_cast<std::size_t>(positions), 0);
        for (int rank = 0; rank < ranks; ++rank) {
          const int position = paired.position(rank);
          ASSERT_TRUE(paired.first(position) <= rank && rank < paired.first(position + 1));
          ASSERT_LE(paired.first(position + 1) - paired.first(position), 2);
          if (paired.leads(rank)) ++leaders[static_cast<std::size_t>(position)];
        }
        for (const int count : leaders) ASSERT_EQ(count, 1);
      }
    }
  }
}

TEST(FoldedGrid, ExchangeReachesEveryRankInOrder) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int base = 2; base <= ranks; ++base) {
      const FoldedGrid grid(ranks, base);
      ASSERT_LE(grid.size(), ranks);
      ASSERT_GT(grid.size() * base, ranks);
      // The ranks represented by a position before the first dimension, and the ranks known to it
      // later: from begin[p] to end[p].
      std::vector<int> begin, end;
      for (int p = 0; p < grid.size(); ++p) {
        begin.push_back(grid.leader(p));
        end.push_back(grid.leader(p) + grid.folded(p) + 1);
        ASSERT_EQ(begin.back(), p == 0 ? 0 : end[static_cast<std::size_t>(p - 1)]);
        ASSERT_LT(grid.folded(p), base);
        for (int rank = begin.back(); rank < end.back(); ++rank) {
          ASSERT_EQ(grid.position(rank), p);
          ASSERT_EQ(grid.leads(rank), rank == begin.back());
        }
      }
      ASSERT_EQ(end.back(), ranks);
      for (int d = 0; d < grid.dimensions(); ++d) {
        const std::vector<int> begin_before = begin;
        const std::vector<int> end_before = end;
        for (int p = 0; p < grid.size(); ++p) {
          const FoldedGrid::Line line = grid.line(p, d);
          ASSERT_EQ(line.at(line.digit), p);
          for (int to = 0; to < base; ++to) {
            const auto q = static_cast<std::size_t>(line.at(to));
            ASSERT_EQ(grid.line(line.at(to), d).digit, to);
            ASSERT_EQ(grid.line(line.at(to), d).first, line.first);
            if (to == 0) begin[static_cast<std::size_t>(p)] = begin_before[q];
            if (to > 0) {
              ASSERT_EQ(begin_before[q], end[static_cast<std::size_t>(p)]);
            }
            end[static_cast<std::size_t>(p)] = end_before[q];
          }
        }
      }
      for (int p = 0; p < grid.size(); ++p) {
        ASSERT_EQ(begin[static_cast<std::size_t>(p)], 0);
        ASSERT_EQ(end[static_cast<std::size_t>(p)], ranks) << base << " of " << ranks;
      }
    }
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

TEST(Blocks, SegmentsAreNeverEmptyUnlessAllIs) {
  EXPECT_EQ(segments_of(0, 8), 1);
  EXPECT_EQ(segments_of(5, 8), 5);
  EXPECT_EQ(segments_of(8, 8), 8);
  EXPECT_EQ(segments_of(std::int64_t{1} << 40, 8), 8);
}

TEST(HalvingRange, HalvesCoverItAndTheLowerOneIsTheLonger) {
  for (std::int64_t count = 0; count <= 2 * kMostRanks; ++count) {
    const HalvingRange piece{5, count};
    const HalvingRange low = piece.lower_half();
    const HalvingRange high = piece.upper_half();
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
}  // namespace unisono::algorithm::pattern::pattern_test
