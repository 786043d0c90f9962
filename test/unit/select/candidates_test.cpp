// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/default_machine.hpp"
#include "select/override.hpp"

namespace unisono::select {
namespace {

using algorithm::Parameters;
using schedule::Collective;
using schedule::Shape;

constexpr model::Work kSum{.type = arith::Type::float64, .op = arith::Operator::sum};

Shape shape_of(Collective collective, int ranks, std::int64_t count) {
  return {.collective = collective,
          .ranks = ranks,
          .count = collective == Collective::barrier ? 0 : count};
}

std::vector<Priced> priced(const Shape& shape, const model::Machine& machine) {
  auto all = price_candidates(shape, machine, kSum);
  EXPECT_TRUE(all.ok()) << (all.ok() ? "" : all.error().message);
  return all.ok() ? std::move(*all) : std::vector<Priced>{};
}

std::vector<int> first_values(std::string_view row, int ranks) {
  std::vector<int> values;
  for (const Parameters& each : parameters_to_price(*algorithm::find(Collective::reduce, row),
                                                    shape_of(Collective::reduce, ranks, 1))) {
    values.push_back(each.values[0]);
  }
  return values;
}

TEST(ParametersToPrice, SmallDegreesThenPowersOfTwoAndTheLargest) {
  const std::vector<int> few = first_values("fnomial", 31);
  for (const int degree : {2, 3, 4, 5, 6, 7, 8, 16}) {
    EXPECT_EQ(std::ranges::count(few, degree), 1) << degree;
  }
  EXPECT_EQ(std::ranges::count(few, 9), 0);
  EXPECT_EQ(std::ranges::count(few, 31), 1);
  EXPECT_EQ(few.front(), algorithm::find(Collective::reduce, "fnomial")->parameters[0].fallback);
  EXPECT_EQ(parameters_to_price(*algorithm::find(Collective::reduce, "serial"),
                                shape_of(Collective::reduce, 31, 1)),
            std::vector<Parameters>(1));
}

TEST(ParametersToPrice, EveryValueIsInItsRangeAndTheDefaultIsAmongThem) {
  for (const algorithm::Algorithm& row : algorithm::table()) {
    for (const int ranks : {1, 2, 7, 64}) {
      const Shape shape = shape_of(row.collective, ranks, 1);
      const auto all = parameters_to_price(row, shape);
      ASSERT_FALSE(all.empty());
      for (const Parameters& each : all) {
        for (std::size_t i = 0; i < row.parameters.size(); ++i) {
          const algorithm::ParameterSpec& spec = row.parameters[i];
          EXPECT_GE(each.values[i], spec.low) << row.name;
          EXPECT_LE(each.values[i], spec.high == 0 ? std::max(spec.low, ranks) : spec.high)
              << row.name;
        }
      }
      EXPECT_EQ(all.front(), algorithm::default_parameters(row, shape))
          << row.name << " on " << ranks;
    }
  }
}

TEST(PriceCandidates, HasEveryLegalRowOnceForEachParameterAndInOrder) {
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const int ranks : {2, 5, 8}) {
      const Shape shape = shape_of(static_cast<Collective>(c), ranks, 40);
      const auto all = priced(shape, model::default_machine());
      std::set<std::string> names;
      for (const Priced& each : all) {
        EXPECT_TRUE(names.insert(algorithm::describe(*each.row, each.parameters)).second);
        EXPECT_EQ(why_not(*each.row, shape, each.parameters), "");
        EXPECT_GT(each.price.ns, 0);
      }
      EXPECT_TRUE(
          std::ranges::is_sorted(all, {}, [](const Priced& each) { return each.price.ns; }));
      for (const algorithm::Algorithm& row : algorithm::table()) {
        if (row.collective != shape.collective || row.refuse != nullptr) continue;
        EXPECT_TRUE(std::ranges::any_of(all, [&](const Priced& each) { return each.row == &row; }))
            << row.name;
      }
    }
  }
}

TEST(PriceCandidates, APriceFromOneScheduleIsThatOfAll) {
  int from_one = 0;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const Shape shape = shape_of(row.collective, 8, 64);
    const Parameters parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::ranks_are_alike(row, shape) || !why_not(row, shape, parameters).empty()) {
      continue;
    }
    std::vector<schedule::Schedule> set;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      set.push_back(*algorithm::build(row, shape, parameters, rank));
    }
    const model::Machine& machine = model::default_machine();
    EXPECT_NEAR(price_of(row, parameters, shape, machine, kSum)->ns,
                model::price(set, machine, kSum).ns, 1e-6)
        << row.name;
    ++from_one;
  }
  EXPECT_GT(from_one, 3);
}

// A machine where only the number of steps counts, and one where only sending costs.
TEST(PriceCandidates, TheCheapestIsThatOfTheMachine) {
  model::Machine machine = model::default_machine();
  machine.cores_per_host = 64;
  for (model::PathParameters& path : machine.paths) {
    path.latency = {.number = 1, .unit = model::Unit::ms, .where = "test"};
  }
  const Priced fewest_steps = priced(shape_of(Collective::allreduce, 16, 1), machine).front();
  EXPECT_EQ(algorithm::describe(*fewest_steps.row, fewest_steps.parameters),
            "recursive-multiplying(16)");
  for (model::PathParameters& path : machine.paths) {
    path.latency = {.number = 1, .unit = model::Unit::ns, .where = "test"};
    path.overhead = {.number = 1, .unit = model::Unit::ms, .where = "test"};
    path.multicast_latency = {};
  }
  const Priced tree = priced(shape_of(Collective::broadcast, 16, 1), machine).front();
  EXPECT_EQ(algorithm::describe(*tree.row, tree.parameters), "fnomial(2)");
}

}  // namespace
}  // namespace unisono::select
