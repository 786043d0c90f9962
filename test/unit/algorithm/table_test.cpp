// SPDX-License-Identifier: BSD-3-Clause
// The table as data: names, parameters, refusals and their reasons.
#include <gtest/gtest.h>

#include <unisono/unisono.h>
#include <limits>
#include <set>

#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::table_test {
namespace {

const Algorithm& row(Collective collective, std::string_view name) {
  const Algorithm* found = find(collective, name);
  UNISONO_CHECK(found != nullptr, "the test names a row that does not exist");
  return *found;
}

void expect_start(const std::string& text, std::string_view start) {
  EXPECT_EQ(text.substr(0, start.size()), start);
}

// Degrees and segments of up to four digits are far more than any machine is known to want.
TEST(Table, NamesWithParametersFitIntoWhatTheApiTells) {
  for (const Algorithm& entry : table()) {
    Parameters parameters;
    parameters.values.fill(9999);
    EXPECT_LT(describe(entry, parameters).size(), sizeof(unisono_comm_info_t::algorithm))
        << describe(entry, parameters);
  }
}

TEST(Table, RowsAreCompleteAndNamesUnique) {
  std::set<std::pair<Collective, std::string_view>> names;
  std::set<Collective> collectives;
  for (const Algorithm& entry : table()) {
    EXPECT_TRUE(names.emplace(entry.collective, entry.name).second) << entry.name;
    EXPECT_EQ(find(entry.collective, entry.name), &entry);
    collectives.insert(entry.collective);
    for (const std::string_view text :
         {entry.name, entry.idea, entry.source, entry.steps, entry.bytes, entry.wins}) {
      EXPECT_FALSE(text.empty()) << entry.name;
    }
    EXPECT_NE(entry.build, nullptr);
    EXPECT_LE(entry.parameters.size(), static_cast<std::size_t>(kMaxParameters));
    for (const ParameterSpec& spec : entry.parameters) {
      EXPECT_GE(spec.fallback, spec.low);
      EXPECT_FALSE(spec.name.empty() || spec.help.empty());
    }
  }
  EXPECT_EQ(static_cast<int>(collectives.size()), schedule::kCollectiveCount);
}

TEST(Table, UnknownNamesAreAnsweredWithTheNearestFirst) {
  EXPECT_EQ(find(Collective::barrier, "ring"), nullptr);
  expect_start(
      explain_unknown(Collective::allreduce, "pairwize"),
      "allreduce has no algorithm 'pairwize'; choose one of: pairwise, reduce-broadcast, ");
  expect_start(
      explain_unknown(Collective::allgather, "dirct"),
      "allgather has no algorithm 'dirct'; choose one of: direct, ring, recursive-doubling, ");
}

TEST(Table, DefaultsFitTheGroup) {
  const Shape shape{.collective = Collective::allreduce, .ranks = 5};
  EXPECT_EQ(default_parameters(row(Collective::allreduce, "gather-release"), shape).values[0], 5);
  for (const Algorithm& entry : table()) {
    for (int ranks = 1; ranks <= 70; ++ranks) {
      const Shape any{.collective = entry.collective, .ranks = ranks, .count = 1};
      if (entry.refuse == nullptr) {
        EXPECT_EQ(why_illegal(entry, any, default_parameters(entry, any)), "");
      }
    }
  }
}

// Takes a degree that divides the ranks, from 2.
const char* refuse_remainders(const Shape& shape, const Parameters& parameters) {
  return shape.ranks % parameters.values[0] == 0 ? nullptr : "the degree has to divide the ranks";
}

TEST(Table, ARowMayRefuseRanks) {
  Algorithm divides = row(Collective::reduce, "fnomial");
  divides.refuse = refuse_remainders;
  const auto fallback = [&](int ranks) {
    return default_parameters(divides, {.collective = Collective::reduce, .ranks = ranks});
  };
  EXPECT_EQ(fallback(8).values[0], 4);
  EXPECT_EQ(fallback(9).values[0], 3);
  EXPECT_EQ(fallback(7).values[0], 4);  // none fits
  const Shape nine{.collective = Collective::reduce, .ranks = 9};
  EXPECT_EQ(why_illegal(divides, nine, {{3, 0}}), "");
  EXPECT_EQ(why_illegal(divides, nine, {{2, 0}}),
            "reduce fnomial(2) on 9 ranks: the degree has to divide the ranks");
  EXPECT_FALSE(build(divides, nine, {{2, 0}}, 0).ok());
}

// A row that refuses something says so in the table, and accepts something.
TEST(Table, RowsThatRefuseSaySo) {
  for (const Algorithm& entry : table()) {
    EXPECT_EQ(entry.refuse == nullptr, entry.only.empty()) << entry.name;
    int taken = 0;
    for (int ranks = 1; ranks <= 70; ++ranks) {
      const Shape any{.collective = entry.collective, .ranks = ranks, .count = 1};
      taken += why_illegal(entry, any, default_parameters(entry, any)).empty() ? 1 : 0;
    }
    EXPECT_GE(taken, 35) << entry.name;
  }
}

TEST(Table, DescribesARowWithItsParameters) {
  EXPECT_EQ(describe(row(Collective::reduce, "fnomial"), {{4, 0}}), "fnomial(4)");
  EXPECT_EQ(describe(row(Collective::allgather, "ring"), {}), "ring");
}

TEST(Table, RefusalsSayWhatToChoose) {
  const Algorithm& ring = row(Collective::allreduce, "ring");
  const Algorithm& tree = row(Collective::reduce, "fnomial");
  const Shape reduce{Collective::reduce, 5, 1, 3, false};
  const auto allreduce = Collective::allreduce;
  EXPECT_EQ(why_illegal(ring, {allreduce, 5, 0, 3, false}, {}), "");
  expect_start(
      why_illegal(ring, {allreduce, 5, 0, 3, true}, {}),
      "allreduce ring does not combine in the order of ranks, which an operator that does not "
      "commute needs; choose one of: pairwise, reduce-broadcast, gather-release, reduce-s");
  expect_start(
      why_illegal(ring, reduce, {}),
      "allreduce ring cannot do reduce; reduce has no algorithm 'ring'; choose one of: serial, "
      "fnomial");
  EXPECT_EQ(why_illegal(tree, reduce, {{1, 0}}),
            "reduce fnomial: degree is 1; at 5 ranks choose 2 to 5");
  EXPECT_EQ(why_illegal(tree, reduce, {{6, 0}}),
            "reduce fnomial: degree is 6; at 5 ranks choose 2 to 5");
  EXPECT_EQ(why_illegal(ring, {allreduce, 0, 0, 3, false}, {}),
            "allreduce ring: a shape of 0 ranks: there has to be one");
  EXPECT_EQ(why_illegal(ring, {allreduce, 5, 3, 3, false}, {}),
            "allreduce ring: root 3 for allreduce, which has none: leave it at 0");
  EXPECT_EQ(why_illegal(tree, {Collective::reduce, 5, 5, 3, false}, {{2, 0}}),
            "reduce fnomial: root 5 of 5 ranks: choose 0 to 4");
  EXPECT_EQ(why_illegal(ring, {allreduce, 5, 0, -1, false}, {}),
            "allreduce ring: -1 elements on 5 ranks: choose 0 to 1844674407370955161");
}

TEST(Table, BuildRefusesRanksThatDoNotExist) {
  const Algorithm& ring = row(Collective::allgather, "ring");
  for (const int rank : {-1, 5, std::numeric_limits<int>::max()}) {
    const auto result = build(ring, {Collective::allgather, 5, 0, 1, false}, {}, rank);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, base::Code::argument);
    EXPECT_NE(result.error().message.find("allgather ring: rank "), std::string::npos);
  }
}

TEST(Table, BuildIsPure) {
  for (const Algorithm& entry : table()) {
    const Shape shape{.collective = entry.collective, .ranks = 11, .count = 13};
    const Parameters parameters = default_parameters(entry, shape);
    if (!why_illegal(entry, shape, parameters).empty()) continue;
    EXPECT_EQ(build_set(entry, shape, parameters), build_set(entry, shape, parameters));
  }
}

}  // namespace
}  // namespace unisono::algorithm::test::table_test
