// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/subject.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace unisono::tools::bench::subject_test {
namespace {

using schedule::Collective;
using Counts = std::vector<std::int64_t>;

Counts counts(Uneven uneven, int ranks, std::int64_t count) {
  Counts all;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(block_count({Collective::gather, true}, uneven, r, ranks, count));
  }
  return all;
}

TEST(Subject, BlocksAreAsUnevenAsTheirName) {
  EXPECT_EQ(counts(Uneven::halves, 4, 3), (Counts{1, 5, 1, 5}));
  EXPECT_EQ(counts(Uneven::zeros, 4, 3), (Counts{0, 6, 0, 6}));
  EXPECT_EQ(counts(Uneven::one, 4, 3), (Counts{1, 9, 1, 1}));
  EXPECT_EQ(counts(Uneven::one, 1, 3), Counts{3});
  EXPECT_EQ(counts(Uneven::one, 3, 0), (Counts{0, 0, 0}));
}

TEST(Subject, EqualBlocksStayEqual) {
  EXPECT_EQ(block_count(Collective::gather, Uneven::one, 1, 4, 3), 3);
}

// In an alltoallv each rank sends and receives one of the long blocks.
TEST(Subject, OneBlockOfEachRankHasNearlyAll) {
  constexpr int kRanks = 5;
  constexpr std::int64_t kCount = 7;
  for (int r = 0; r < kRanks; ++r) {
    Counts sent;
    for (int to = 0; to < kRanks; ++to) {
      sent.push_back(
          block_count({Collective::alltoall, true}, Uneven::one, r + to, kRanks, kCount));
    }
    EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}), kRanks * kCount);
  }
}

TEST(Subject, NamesOfUnevenAreReadBack) {
  for (const Uneven each : {Uneven::halves, Uneven::zeros, Uneven::one}) {
    EXPECT_EQ(uneven_from_name(uneven_name(each)), each);
  }
  EXPECT_EQ(uneven_from_name("twos"), std::nullopt);
}

}  // namespace
}  // namespace unisono::tools::bench::subject_test
