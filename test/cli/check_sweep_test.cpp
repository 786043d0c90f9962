// SPDX-License-Identifier: BSD-3-Clause
// The sweep of `unisono check`: its cases, and that a wrong algorithm does not pass.
#include "check/check_sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "arguments/algorithm_lookup.hpp"
#include "schedule/builder.hpp"

namespace unisono::tools::check_sweep_test {
namespace {

using schedule::Collective;

TEST(Sweep, TriesEveryRootOfSmallGroups) {
  EXPECT_EQ(sweep_roots(Collective::broadcast, 16, false).size(), 16u);
  EXPECT_EQ(sweep_roots(Collective::reduce, 40, true).size(), 40u);
  EXPECT_EQ(sweep_roots(Collective::allreduce, 16, true), std::vector<int>{0});
}

TEST(Sweep, SamplesRootsOfLargeGroups) {
  for (int ranks = 17; ranks <= 130; ++ranks) {
    const std::vector<int> roots = sweep_roots(Collective::broadcast, ranks, false);
    const std::set<int> distinct(roots.begin(), roots.end());
    EXPECT_EQ(distinct.size(), roots.size()) << ranks;
    for (const int wanted : {0, 1, ranks / 2, ranks - 1}) {
      EXPECT_TRUE(distinct.contains(wanted)) << ranks;
    }
    EXPECT_GE(*distinct.begin(), 0) << ranks;
    EXPECT_LT(*distinct.rbegin(), ranks) << ranks;
  }
}

TEST(Sweep, TriesParametersAtTheirEndsAndBetween) {
  const auto rows = find_rows("broadcast/fnomial");
  ASSERT_TRUE(rows.ok());
  std::vector<int> degrees;
  for (const auto& parameters : sweep_parameters(*rows->front(), 9)) {
    degrees.push_back(parameters.values[0]);
  }
  EXPECT_EQ(degrees, (std::vector<int>{2, 3, 4, 9}));
}

TEST(Sweep, CombinesParametersInSmallGroupsOnly) {
  const auto rows = find_rows("reduce/fnomial-split");
  ASSERT_TRUE(rows.ok());
  std::set<std::pair<int, int>> small, large;
  for (const auto& [values] : sweep_parameters(*rows->front(), 16)) {
    small.emplace(values[0], values[1]);
  }
  for (const auto& [values] : sweep_parameters(*rows->front(), 64)) {
    large.emplace(values[0], values[1]);
    EXPECT_TRUE(values[0] == 3 || values[1] == 4) << values[0] << " " << values[1];
  }
  EXPECT_TRUE(small.contains({1, 16}));
  EXPECT_TRUE(large.contains({3, 64}));
  EXPECT_TRUE(large.contains({1, 4}));
  EXPECT_LT(large.size(), small.size());
}

// A broadcast that forgets the last rank.
schedule::Schedule forgetful(const schedule::Shape& shape, const algorithm::Parameters&, int rank) {
  schedule::Builder builder(shape, rank);
  if (rank == shape.root) {
    for (int peer = 0; peer < shape.ranks - 1; ++peer) {
      if (peer != rank) builder.send(peer, 0, schedule::input(0, shape.count));
    }
  } else if (rank < shape.ranks - 1) {
    const schedule::SlotId slot = builder.slot(shape.root, shape.count);
    const schedule::OpId arrived = builder.wait(slot);
    builder.copy(schedule::output(0, shape.count), builder.of(slot), {arrived});
  }
  return std::move(builder).take();
}

std::vector<SweepResult> sweep_of(std::vector<const algorithm::Algorithm*> algorithms) {
  Sweep sweep;
  sweep.algorithms = std::move(algorithms);
  sweep.ranks = {1, 2, 3, 4};
  std::vector<SweepResult> results;
  run_sweep(sweep, {.on_progress = [](const std::string& text) { EXPECT_FALSE(text.empty()); },
                    .on_result = [&](const SweepResult& r) { results.push_back(r); }});
  return results;
}

TEST(Sweep, TriesBlocksOfUnequalLengths) {
  EXPECT_TRUE(sweep_blocks(Collective::scan, 5).empty());
  for (const Collective collective : {Collective::gather, Collective::many_to_many}) {
    const auto blocks = sweep_blocks(collective, 20);
    ASSERT_EQ(blocks.size(), 2u);
    EXPECT_EQ(blocks, sweep_blocks(collective, 20));
    EXPECT_EQ(blocks[0].all_receive(), collective == Collective::gather);
    std::set<std::int64_t> lengths;
    for (int rank = 0; rank < 20; ++rank) lengths.insert(blocks[0].of(rank).count);
    EXPECT_GT(lengths.size(), 2u);
    EXPECT_EQ(blocks[1].total(), 20);
  }
  const auto pairs = sweep_blocks(Collective::alltoall, 6);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(
      schedule::in_place({.collective = Collective::alltoall, .ranks = 6, .blocks = pairs[0]}, 0),
      std::nullopt);
  EXPECT_NE(
      schedule::in_place({.collective = Collective::alltoall, .ranks = 6, .blocks = pairs[1]}, 0),
      std::nullopt);
}

TEST(Sweep, FindsAWrongAlgorithm) {
  algorithm::Algorithm wrong = algorithm::table().front();
  wrong.name = "forgetful";
  wrong.collective = Collective::broadcast;
  wrong.parameters = {};
  wrong.build = forgetful;
  const auto results = sweep_of({&wrong});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_GT(results[0].sets, results[0].violated);  // one rank is right
  EXPECT_GT(results[0].violated, 0);
  ASSERT_FALSE(results[0].failures.empty());
  EXPECT_EQ(results[0].failures[0].violations.at(0).rule, check::Rule::missing);
  EXPECT_NE(results[0].failures[0].shape.find("forgetful, 2 ranks, root 0, count 1"),
            std::string::npos)
      << results[0].failures[0].shape;
}

TEST(Sweep, ReportsInTheOrderGiven) {
  const auto rows = find_rows("allreduce");
  ASSERT_TRUE(rows.ok());
  const auto results = sweep_of(*rows);
  ASSERT_EQ(results.size(), rows->size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].algorithm, (*rows)[i]);
    EXPECT_GT(results[i].sets, 0);
    EXPECT_EQ(results[i].violated, 0) << row_name(*results[i].algorithm);
  }
}

TEST(Lookup, NamesRowsAndCollectives) {
  EXPECT_EQ(find_rows("allreduce/ring")->size(), 1u);
  const auto is_ring = [](const algorithm::Algorithm& row) { return row.name == "ring"; };
  const auto rings = std::ranges::count_if(algorithm::table(), is_ring);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(find_rows("ring")->size()), rings);
  EXPECT_GT(rings, 1);
  EXPECT_GT(find_rows("broadcast")->size(), 1u);
  EXPECT_NE(find_rows("broadcast/fnomail").error().message.find("did you mean fnomial?"),
            std::string::npos);
  EXPECT_NE(find_row("ring").error().message.find("allgather/ring"), std::string::npos);
}

TEST(Lookup, SetsParameters) {
  const algorithm::Algorithm& row = **find_row("broadcast/fnomial");
  const schedule::Shape shape{Collective::broadcast, 9, 0, 1, false};
  EXPECT_EQ(parse_parameters(row, shape, {"degree=3"})->values[0], 3);
  EXPECT_EQ(parse_parameters(row, shape, {})->values[0], 4);
  for (const char* bad : {"degree", "degree=", "degree=x", "degree=99999999999", "=3", "depth=3"}) {
    EXPECT_FALSE(parse_parameters(row, shape, {bad}).ok()) << bad;
  }
}

}  // namespace
}  // namespace unisono::tools::check_sweep_test
