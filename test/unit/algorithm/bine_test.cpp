// SPDX-License-Identifier: BSD-3-Clause
// Bine butterflies: partners, and how far their messages go compared with a hypercube's.
#include "algorithm/pattern/bine.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace unisono::algorithm::pattern::bine_test {
namespace {

TEST(Bine, PartnersAreMutualAndTheFirstOfThePapersDistances) {
  for (int ranks = 2; ranks <= 130; ++ranks) {
    const BineCube cube(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      if (cube.outside(rank)) continue;
      for (int d = 0; d < cube.dimensions(); ++d) {
        const int other = cube.partner(rank, d);
        ASSERT_EQ(cube.partner(other, d), rank) << ranks << " ranks, step " << d;
        ASSERT_NE(cube.is_upper(other, d), cube.is_upper(rank, d)) << ranks << " ranks, " << rank;
      }
    }
  }
  const BineCube cube(64);
  EXPECT_EQ(cube.partner(0, 0), 1);
  EXPECT_EQ(cube.partner(0, 1), 63);
  EXPECT_EQ(cube.partner(0, 2), 3);
  EXPECT_EQ(cube.partner(0, 3), 59);
  EXPECT_EQ(cube.partner(0, 4), 11);
}

struct Traffic {
  double hops = 0;     // on a ring of the ranks, weighted with the length of messages
  double leaving = 0;  // between groups of so many ranks, over all places of the first rank
};

// The traffic of an allreduce by halving and doubling, in vectors a rank.
template <typename Cube>
Traffic traffic(int ranks, int group) {
  const Cube cube(ranks);
  Traffic all;
  for (int d = 0; d < cube.dimensions(); ++d) {
    const double length = 2.0 / (2 << d) / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      const int other = cube.partner(rank, d);
      const int distance = std::abs(other - rank);
      all.hops += length * std::min(distance, ranks - distance);
      for (int first = 0; first < group; ++first) {
        if ((rank + first) / group != (other + first) / group) all.leaving += length / group;
      }
    }
  }
  return all;
}

// The figures of docs/explanation/algorithms-of-the-2020s.md.
TEST(Bine, MessagesGoLessFarThanInAHypercube) {
  const Traffic bine = traffic<BineCube>(64, 8), cube = traffic<FoldedCube>(64, 8);
  EXPECT_NEAR(bine.hops, 4.22, 0.01);
  EXPECT_NEAR(cube.hops, 6.0, 0.01);
  EXPECT_NEAR(bine.leaving / cube.leaving, 0.80, 0.01);
}

}  // namespace
}  // namespace unisono::algorithm::pattern::bine_test
