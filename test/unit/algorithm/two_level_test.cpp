// SPDX-License-Identifier: BSD-3-Clause
// Two levels send between hosts exactly the messages that the inner algorithm sends for as many
// ranks as there are hosts, whatever the number of ranks. prove_test.cpp proves that the results
// are right.
#include "algorithm/two_level.hpp"

#include <gtest/gtest.h>

#include "algorithm/scan_of_hosts.hpp"
#include "harness/host_maps.hpp"
#include "schedule/cost.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::two_level_test {
namespace {

using schedule::CostBetweenHosts;
using topology::HostMap;

const Algorithm& two_level_row(Collective collective) {
  const Algorithm* row = find(collective, "two-level");
  UNISONO_CHECK(row != nullptr, "the test names a row that does not exist");
  return *row;
}

Collective collective_of_leaders(Collective collective) {
  return collective == Collective::scan ? Collective::exscan : collective;
}

// How many elements the ranks of two hosts have for each other, or those of a host have.
std::vector<std::int64_t> counts_of_hosts(const Shape& shape) {
  const int hosts = shape.hosts.hosts();
  const auto ranks = [&](int host) { return static_cast<int>(shape.hosts.members(host).size()); };
  std::vector<std::int64_t> counts;
  for (int host = 0; host < hosts; ++host) {
    if (!schedule::has_pairs(shape.collective)) {
      counts.push_back(shape.count * ranks(host));
      continue;
    }
    for (int to = 0; to < hosts; ++to) {
      counts.push_back(to == host ? 0 : shape.count * ranks(host) * ranks(to));
    }
  }
  return counts;
}

// The cost of the inner algorithm among as many ranks as there are hosts, each on its own host.
CostBetweenHosts cost_of_inner(const Shape& shape, int choice) {
  const ParameterSpec& inner = two_level_row(shape.collective).parameters[0];
  Shape leaders = shape;
  leaders.collective = collective_of_leaders(shape.collective);
  const Algorithm* row = find(leaders.collective, inner.names[static_cast<std::size_t>(choice)]);
  leaders.ranks = shape.hosts.hosts();
  leaders.root = schedule::is_rooted(shape.collective) ? shape.hosts.of(shape.root) : 0;
  std::vector<int> alone;
  for (int host = 0; host < leaders.ranks; ++host) alone.push_back(host);
  leaders.hosts = HostMap::of_labels(alone);
  if (schedule::has_blocks(shape.collective)) {
    const auto counts = counts_of_hosts(shape);
    leaders.count = 0;
    leaders.blocks = schedule::has_pairs(shape.collective)
                         ? *schedule::Blocks::of_pairs(leaders.ranks, counts)
                         : *schedule::Blocks::of_ranks(counts);
  }
  return schedule::cost_between_hosts(build_set(*row, leaders, default_parameters(*row, leaders)));
}

void expect_hosts_contributions(const Shape& shape) {
  const Algorithm& row = two_level_row(shape.collective);
  for (int choice = 0; choice <= row.parameters[0].high; ++choice) {
    Parameters parameters = default_parameters(row, shape);
    parameters.values[0] = choice;
    if (!why_illegal(row, shape, parameters).empty()) {
      EXPECT_TRUE(schedule::is_reduction(shape.collective) && !shape.hosts.are_neighbours());
      continue;
    }
    const auto set = build_set(row, shape, parameters);
    EXPECT_EQ(schedule::cost_between_hosts(set), cost_of_inner(shape, choice))
        << name_of(row, shape, parameters);
  }
}

TEST(TwoLevel, TheNetworkCarriesWhatTheInnerAlgorithmSendsForHosts) {
  for (const Algorithm& row : table()) {
    if (!row.uses_hosts) continue;
    for (const int ranks : {2, 3, 5, 8, 13}) {
      for (const HostMap& hosts : unisono::test::host_maps(ranks)) {
        Shape shape{.collective = row.collective, .ranks = ranks, .count = 6, .hosts = hosts};
        if (row.collective == Collective::barrier) shape.count = 0;
        const int roots = schedule::is_rooted(row.collective) ? ranks : 1;
        for (shape.root = 0; shape.root < roots; ++shape.root) {
          expect_hosts_contributions(shape);
        }
      }
    }
  }
}

Parameters with_inner(const Algorithm& row, const Shape& shape, std::string_view name) {
  Parameters parameters = default_parameters(row, shape);
  parameters.values[0] = *read_value(row.parameters[0], name);
  return parameters;
}

// Eight processes on four hosts, as in the papers: four contributions and one result.
TEST(TwoLevel, EightRanksOnFourHosts) {
  const HostMap pairs = HostMap::of_labels(std::vector{0, 0, 1, 1, 2, 2, 3, 3});
  const Shape shape{.collective = Collective::allreduce, .ranks = 8, .count = 10, .hosts = pairs};
  const Algorithm& row = two_level_row(Collective::allreduce);
  const auto released = build_set(row, shape, with_inner(row, shape, "gather-release"));
  EXPECT_EQ(schedule::cost_between_hosts(released),
            (CostBetweenHosts{.steps = 2, .messages = 6, .sends = 4, .elements = 60}));
  const Algorithm& flat = *find(Collective::allreduce, "gather-release");
  const auto all = build_set(flat, shape, default_parameters(flat, shape));
  EXPECT_EQ(schedule::cost_between_hosts(all).messages, 12);
}

// Messages between the hosts of eight ranks in pairs, by two levels and by the row that treats all
// ranks alike.
struct Packets {
  Collective collective;
  std::string_view inner, flat;
  std::int64_t two_level_messages, flat_messages;
};

TEST(TwoLevel, FewerMessagesBetweenHostsThanOfTheFlatRow) {
  const HostMap pairs = HostMap::of_labels(std::vector{0, 0, 1, 1, 2, 2, 3, 3});
  constexpr Packets kExpected[] = {
      {Collective::gather, "linear", "linear", 3, 6},
      {Collective::scatter, "linear", "linear", 3, 6},
      {Collective::alltoall, "linear", "linear", 12, 48},
      {Collective::reduce_scatter, "pairwise", "pairwise", 12, 48},
      {Collective::scan, "linear", "linear", 3, 3},
      {Collective::scan, "recursive-doubling", "recursive-doubling", 5, 13},
      {Collective::exscan, "recursive-doubling", "recursive-doubling", 5, 13},
  };
  for (const Packets& each : kExpected) {
    SCOPED_TRACE(schedule::collective_name(each.collective));
    const Shape shape{.collective = each.collective, .ranks = 8, .count = 2, .hosts = pairs};
    const Algorithm& row = two_level_row(each.collective);
    const auto in_two = build_set(row, shape, with_inner(row, shape, each.inner));
    EXPECT_EQ(schedule::cost_between_hosts(in_two).messages, each.two_level_messages);
    const Algorithm& flat = *find(each.collective, each.flat);
    const auto alike = build_set(flat, shape, default_parameters(flat, shape));
    EXPECT_EQ(schedule::cost_between_hosts(alike).messages, each.flat_messages);
  }
}

TEST(TwoLevel, TheRootLeadsItsHost) {
  const HostMap hosts = HostMap::of_labels(std::vector{0, 0, 0, 1, 1, 1});
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter}) {
    const Shape shape{.collective = collective, .ranks = 6, .root = 4, .count = 3, .hosts = hosts};
    const Algorithm& row = two_level_row(collective);
    for (const auto& message :
         schedule::messages(build_set(row, shape, default_parameters(row, shape)))) {
      if (hosts.of(message.source) == hosts.of(message.target)) continue;
      EXPECT_TRUE(message.source == 4 || message.target == 4);
    }
  }
}

TEST(TwoLevel, RefusesWhatBreaksTheOrderOfRanksAndSaysWhy) {
  const Algorithm& row = two_level_row(Collective::allreduce);
  Shape shape{.collective = Collective::allreduce, .ranks = 4, .count = 1, .ordered = true};
  shape.hosts = HostMap::of_labels(std::vector{0, 0, 1, 1});
  EXPECT_EQ(why_illegal(row, shape, default_parameters(row, shape)), "");
  EXPECT_EQ(why_illegal(row, shape, with_inner(row, shape, "ring")),
            "allreduce two-level(ring,4) on 4 ranks: the operator does not commute, and the inner "
            "algorithm does not keep the order of ranks");
  shape.hosts = HostMap::of_labels(std::vector{0, 1, 0, 1});
  EXPECT_EQ(why_illegal(row, shape, default_parameters(row, shape)),
            "allreduce two-level(pairwise,4) on 4 ranks: the operator does not commute, and a "
            "host's ranks do not follow one another");
  shape.ordered = false;
  EXPECT_EQ(why_illegal(row, shape, default_parameters(row, shape)), "");
}

TEST(TwoLevel, ScansRefuseHostsOutOfOrderWhateverTheOperator) {
  for (const Collective collective : {Collective::scan, Collective::exscan}) {
    const Algorithm& row = two_level_row(collective);
    EXPECT_EQ(row.only, two_level::kHostsInOrder);
    Shape shape{.collective = collective, .ranks = 4, .count = 1};
    shape.hosts = HostMap::of_labels(std::vector{0, 0, 0, 1});
    EXPECT_EQ(why_illegal(row, shape, default_parameters(row, shape)), "");
    shape.hosts = HostMap::of_labels(std::vector{0, 1, 0, 1});
    EXPECT_TRUE(why_illegal(row, shape, default_parameters(row, shape))
                    .ends_with("a host's ranks do not follow one another, so that its sum is no "
                               "part of a scan"));
  }
}

TEST(TwoLevel, EveryInnerAlgorithmIsARowAndTakesAnyNumberOfHosts) {
  for (const Algorithm& row : table()) {
    if (!row.uses_hosts || row.parameters.empty()) continue;
    for (const std::string_view name : row.parameters[0].names) {
      const Algorithm* inner = find(collective_of_leaders(row.collective), name);
      ASSERT_NE(inner, nullptr) << name;
      EXPECT_EQ(inner->refuse, nullptr) << name;
      EXPECT_TRUE(inner->unequal_blocks) << name;
      EXPECT_FALSE(inner->uses_hosts) << name;
      // With blocks of pairs, a leader counts those of its own host only.
      EXPECT_TRUE(inner->local_counts || !schedule::has_pairs(row.collective)) << name;
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::test::two_level_test
