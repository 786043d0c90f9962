// SPDX-License-Identifier: BSD-3-Clause
#include "select/few_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "model/default_machine.hpp"

namespace unisono::select::few_ranks_test {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Collective;
using schedule::Shape;

TEST(FewOf, IsAMultipleOfFourThatKeepsManyLeftOverRanks) {
  const auto few = [](int ranks) { return few_of(ranks, 16); };
  EXPECT_EQ(few(16), 16);
  EXPECT_EQ(few(17), 12);
  EXPECT_EQ(few(24), 12);
  EXPECT_EQ(few(31), 16);
  EXPECT_EQ(few(32), 16);
  EXPECT_EQ(few(33), 12);
  EXPECT_EQ(few(48), 12);
  EXPECT_EQ(few(63), 16);
  EXPECT_EQ(few(64), 16);
  EXPECT_EQ(few(65), 12);
  for (int ranks = 16; ranks < 5000; ++ranks) {
    EXPECT_GE(few(ranks), 12) << ranks;
    EXPECT_LE(few(ranks), 16) << ranks;
  }
}

Shape shape_of(Collective collective, int ranks, std::int64_t count) {
  return {.collective = collective, .ranks = ranks, .count = count};
}

Parameters with(std::size_t number, int value, const Algorithm& row, const Shape& shape) {
  Parameters parameters = algorithm::default_parameters(row, shape);
  parameters.values[number] = value;
  return parameters;
}

TEST(ForAll, ADegreeOfAllRanksStaysOneAndPiecesStayAsTheyAre) {
  const Shape all = shape_of(Collective::reduce, 64, 1000);
  const Shape few = with_few_ranks(all, 16);
  const Algorithm& tree = *algorithm::find(Collective::reduce, "fnomial");
  EXPECT_EQ(for_all(with(0, 16, tree, few), tree, 16, all).values[0], 64);
  EXPECT_EQ(for_all(with(0, 8, tree, few), tree, 16, all).values[0], 8);
  EXPECT_TRUE(stands_for_all(with(0, 16, tree, few), tree, 16));
  const Algorithm& chain = *algorithm::find(Collective::reduce, "chain");
  ASSERT_EQ(chain.parameters[0].counted, algorithm::Counted::pieces);
  EXPECT_EQ(for_all(with(0, 16, chain, few), chain, 16, all).values[0], 16);
  EXPECT_FALSE(stands_for_all(with(0, 16, chain, few), chain, 16));
}

TEST(ForAll, PartsOfAMockUpAreLikeTheirRows) {
  const Shape all = shape_of(Collective::allreduce, 64, 1000);
  const Shape few = with_few_ranks(all, 16);
  const Algorithm& mock = *algorithm::find(Collective::allreduce, "mock-reduce-broadcast");
  const algorithm::Part& reduce = mock.parts[0];
  for (const auto& [name, scaled] : {std::pair{"fnomial", 64}, std::pair{"chain", 16}}) {
    Parameters parameters = algorithm::default_parameters(mock, few);
    const auto row = std::ranges::find(reduce.rows, std::string_view(name));
    ASSERT_NE(row, reduce.rows.end()) << name;
    Parameters own = algorithm::default_parameters(*algorithm::find(reduce.collective, name),
                                                   algorithm::shape_of_part(reduce, few));
    own.values[0] = 16;
    algorithm::set_part(reduce, static_cast<std::size_t>(row - reduce.rows.begin()), own,
                        parameters);
    EXPECT_EQ(for_all(parameters, mock, 16, all).values[reduce.first + 1], scaled) << name;
  }
}

struct Cores {
  bool are_of_hosts;  // each rank is a host of its own
  int number;         // that all ranks share; 0: each has its own
};

// The estimates decide which rows are looked at, so they have to be near.
TEST(ExtrapolatedNs, IsNearThePrice) {
  constexpr int kRanks = 64;
  int compared = 0;
  for (const Cores& cores : {Cores{false, 1}, Cores{false, 4}, Cores{false, 63}, Cores{false, 0},
                             Cores{true, 0}, Cores{true, 2}}) {
    for (const auto& [collective, name] :
         {std::pair{Collective::alltoall, "linear"}, std::pair{Collective::allgather, "direct"},
          std::pair{Collective::reduce_scatter, "pairwise"},
          std::pair{Collective::reduce, "serial"}, std::pair{Collective::broadcast, "binomial"},
          std::pair{Collective::reduce, "fnomial"}}) {
      const Algorithm* const row = algorithm::find(collective, name);
      if (row == nullptr) continue;
      Shape shape = shape_of(collective, kRanks, 500);
      if (schedule::is_rooted(collective)) shape.root = kRanks - 1;
      Pricing pricing;
      pricing.machine = &model::default_machine();
      pricing.in_row = false;
      if (cores.are_of_hosts) {
        shape.hosts = topology::HostMap::apart(kRanks);
        pricing.work.shared_cores = cores.number;
      } else {
        pricing.work.cores = cores.number == 0 ? kRanks : cores.number;
      }
      const Parameters parameters = algorithm::default_parameters(*row, shape);
      const auto estimate = extrapolated_ns(*row, parameters, shape, pricing);
      const auto price = price_of(*row, parameters, shape, pricing);
      ASSERT_TRUE(estimate.has_value()) << name;
      ASSERT_TRUE(price.ok()) << name;
      EXPECT_GT(*estimate, 0.5 * price->ns) << name << ", " << cores.number << " cores";
      EXPECT_LT(*estimate, 2 * price->ns) << name << ", " << cores.number << " cores";
      ++compared;
    }
  }
  EXPECT_GE(compared, 30);
}

// Else the schedules of thousands of ranks would be built, each with steps for all of them.
TEST(SegmentOf, OneRankStandsForManyInShortSegmentsAsInTheWholeCall) {
  int rows = 0;
  for (const Algorithm& row : algorithm::table()) {
    Shape shape = shape_of(row.collective, 4096, 16384);
    shape.exact = row.sums_exactly;
    if (row.collective == Collective::barrier || !one_stands_for_all(row, shape)) continue;
    ++rows;
    for (const std::int64_t segments : {2, 8, 100, 16384}) {
      const Shape segment = segment_of(row, shape, segments);
      EXPECT_TRUE(one_stands_for_all(row, segment)) << row.name << ", " << segments;
      EXPECT_GE(segment.count, 1);
      EXPECT_LE(segment.count, shape.count / 2);
    }
  }
  EXPECT_GT(rows, 10);
}

}  // namespace
}  // namespace unisono::select::few_ranks_test
