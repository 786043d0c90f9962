// SPDX-License-Identifier: BSD-3-Clause
// What is compared for the guidelines, and when one is missed. The figures are the transcripts'
// business: here, nothing is measured.
#include "bench/guideline/comparison.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/guideline/report.hpp"

namespace unisono::tools::bench::guideline_test {
namespace {

using schedule::Collective;

std::vector<Comparison> of(Collective collective, std::vector<std::int64_t> sizes, int ranks,
                           int root = 0) {
  Options options;
  options.subjects = {collective};
  options.sizes = std::move(sizes);
  options.root = root;
  options.usable_cores = 64;
  return comparisons(options, ranks);
}

std::vector<std::string> texts(const std::vector<Comparison>& made) {
  std::vector<std::string> all;
  for (const Comparison& each : made) all.push_back(each.text);
  return all;
}

using Texts = std::vector<std::string>;

TEST(Guidelines, OfABarrierHaveNoSize) {
  const auto two = of(Collective::barrier, {8, 16}, 2);
  ASSERT_EQ(texts(two), Texts{"barrier <= allreduce of 8 bytes"});
  EXPECT_EQ(two[0].left, (Side{{{Collective::barrier, 0}}, 2}));
  EXPECT_EQ(two[0].right, (Side{{{Collective::allreduce, 8}}, 2}));
  EXPECT_EQ(two[0].limit, 1);
  const auto three = of(Collective::barrier, {8, 16}, 3);
  ASSERT_EQ(texts(three),
            (Texts{"barrier <= allreduce of 8 bytes", "barrier <= 2.5 x on 2 ranks"}));
  EXPECT_EQ(three[1].left, (Side{{{Collective::barrier, 0}}, 3}));
  EXPECT_EQ(three[1].right, (Side{{{Collective::barrier, 0}}, 2}));
  EXPECT_EQ(three[1].limit, 2.5);
}

TEST(Guidelines, AddUpWhatDoesTheSame) {
  const auto made = of(Collective::allreduce, {32}, 2);
  ASSERT_EQ(texts(made), Texts{"allreduce <= reduce + broadcast"});
  EXPECT_EQ(made[0].right, (Side{{{Collective::reduce, 32}, {Collective::broadcast, 32}}, 2}));
}

TEST(Guidelines, CountAllBlocks) {
  const auto made = of(Collective::allgather, {32}, 2);
  ASSERT_EQ(texts(made),
            (Texts{"allgather <= allreduce of all blocks",
                   "allgather <= gather + broadcast of all blocks", "allgather <= alltoall"}));
  EXPECT_EQ(made[0].right, (Side{{{Collective::allreduce, 64}}, 2}));
  EXPECT_EQ(made[1].right, (Side{{{Collective::gather, 32}, {Collective::broadcast, 64}}, 2}));
  EXPECT_EQ(made[2].right, (Side{{{Collective::alltoall, 32}}, 2}));
}

TEST(Guidelines, OfWhatOneRankHasOrGetsNameWhatAllRanksGet) {
  EXPECT_EQ(texts(of(Collective::gather, {32}, 2)), Texts{"gather <= allgather"});
  EXPECT_EQ(texts(of(Collective::scatter, {32}, 2)), Texts{"scatter <= broadcast of all blocks"});
  const auto made = of(Collective::reduce_scatter, {32}, 2);
  ASSERT_EQ(texts(made), Texts{"reduce_scatter <= reduce of all blocks + scatter"});
  EXPECT_EQ(made[0].right, (Side{{{Collective::reduce, 64}, {Collective::scatter, 32}}, 2}));
}

TEST(Guidelines, CompareNeighbouringSizesThatDouble) {
  const auto made = of(Collective::broadcast, {0, 8, 16, 20, 40, 80}, 2);
  ASSERT_EQ(texts(made), Texts(3, "broadcast <= 2.5 x half the size"));
  EXPECT_EQ(made[0].left.acts, (std::vector<Act>{{Collective::broadcast, 16}}));
  EXPECT_EQ(made[0].right.acts, (std::vector<Act>{{Collective::broadcast, 8}}));
  EXPECT_EQ(made[2].left.acts, (std::vector<Act>{{Collective::broadcast, 80}}));
}

TEST(Guidelines, CompareNeighbouringNumbersOfRanks) {
  const auto made = of(Collective::broadcast, {8, 20}, 5, 3);
  ASSERT_EQ(texts(made), Texts(2, "broadcast <= 2.5 x on 4 ranks"));
  EXPECT_TRUE(of(Collective::broadcast, {8, 20}, 5, 4).empty()) << "no root on 4 ranks";
}

TEST(Guidelines, DoNotAskForMoreThanThereAreCores) {
  Options options;
  options.subjects = {Collective::broadcast};
  options.sizes = {8};
  options.usable_cores = 4;
  EXPECT_EQ(comparisons(options, 4).size(), 1u);
  EXPECT_TRUE(comparisons(options, 5).empty());
  EXPECT_EQ(comparisons(options, 6).size(), 1u);
}

TEST(Guidelines, LeaveOutReductionsThatAreNotDefined) {
  Options options;
  options.subjects = {Collective::barrier, Collective::reduce, Collective::allgather};
  options.sizes = {8, 16};
  options.type = arith::Type::byte;
  EXPECT_EQ(texts(comparisons(options, 2)),
            (Texts{"allgather <= gather + broadcast of all blocks",
                   "allgather <= gather + broadcast of all blocks", "allgather <= alltoall",
                   "allgather <= alltoall", "allgather <= 2.5 x half the size"}));
}

TEST(Guidelines, AreMissedAboveTheFactorOnly) {
  GuidelineResult result;
  result.contest.left.median = 5;
  result.contest.right.median = 4;
  result.at_most = 1.25;
  EXPECT_EQ(result.contest.ratio(), 1.25);
  EXPECT_TRUE(result.holds());
  result.contest.left.median = 5.01;
  EXPECT_FALSE(result.holds());
}

}  // namespace
}  // namespace unisono::tools::bench::guideline_test
