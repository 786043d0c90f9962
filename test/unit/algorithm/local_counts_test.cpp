// SPDX-License-Identifier: BSD-3-Clause
// In a gather, scatter or all-to-all of MPI, a rank may know only the counts of the blocks that it
// sends or receives. Rows with Algorithm::local_counts must write the same schedule from these
// alone.
#include <gtest/gtest.h>

#include <set>

#include "harness/unequal_blocks.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::local_counts_test {
namespace {

using schedule::Blocks;

void expect_the_same(const Algorithm& row, const Shape& shape) {
  const Parameters parameters = default_parameters(row, shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    Shape known = shape;
    known.blocks = unisono::test::blocks_known_to(shape, rank);
    const auto expected = build(row, shape, parameters, rank);
    auto found = build(row, known, parameters, rank);
    ASSERT_TRUE(expected.ok() && found.ok());
    found->shape = shape;
    ASSERT_EQ(schedule::print(*found), schedule::print(*expected))
        << name_of(row, shape, parameters) << ", rank " << rank;
  }
}

TEST(LocalCounts, AreEnoughForRowsThatSaySo) {
  std::set<Collective> collectives;
  for (const Algorithm& row : table()) {
    if (!row.local_counts) continue;
    ASSERT_TRUE(row.unequal_blocks) << row.name;
    collectives.insert(row.collective);
    for (int ranks = 1; ranks <= 13; ++ranks) {
      for (int root = 0; root < (schedule::is_rooted(row.collective) ? ranks : 1); ++root) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
          Shape shape{.collective = row.collective, .ranks = ranks, .root = root};
          shape.blocks = unisono::test::unequal_blocks(row.collective, ranks, seed);
          ASSERT_NO_FATAL_FAILURE(expect_the_same(row, shape));
        }
      }
    }
  }
  EXPECT_EQ(collectives, (std::set{Collective::gather, Collective::scatter, Collective::alltoall}));
}

// The opposite: the test would notice.
TEST(LocalCounts, AreNotEnoughForTrees) {
  const Algorithm* tree = find(Collective::gather, "fnomial");
  ASSERT_NE(tree, nullptr);
  EXPECT_FALSE(tree->local_counts);
  Shape shape{.collective = Collective::gather, .ranks = 4};
  shape.blocks = *Blocks::of_ranks({1, 2, 3, 4});
  Shape known = shape;
  known.blocks = unisono::test::blocks_known_to(shape, 2);
  auto found = build(*tree, known, {{2}}, 2);
  ASSERT_TRUE(found.ok());
  found->shape = shape;
  EXPECT_FALSE(*found == *build(*tree, shape, {{2}}, 2));
}

TEST(UnequalBlocks, AreRefusedWithTheRowsThatTakeThem) {
  const Algorithm* bruck = find(Collective::alltoall, "bruck");
  ASSERT_NE(bruck, nullptr);
  Shape shape{.collective = Collective::alltoall, .ranks = 2};
  shape.blocks = *Blocks::of_pairs(2, {1, 2, 3, 4});
  EXPECT_EQ(
      why_illegal(*bruck, shape, {}),
      "alltoall bruck needs blocks of equal length; choose one of: linear, pairwise, two-level, "
      "multi-leader");
  shape.count = 3;
  EXPECT_EQ(why_illegal(*bruck, shape, {}),
            "alltoall bruck: a count beside the counts of blocks: leave it at 0");
}

}  // namespace
}  // namespace unisono::algorithm::test::local_counts_test
