// SPDX-License-Identifier: BSD-3-Clause
// A choice by price takes short cuts (select/price_book.hpp), which do not change it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <vector>

#include "select/candidates.hpp"
#include "select/price_book.hpp"
#include "select/select.hpp"
#include "unit/model/shipped.hpp"
#include "unit/select/shapes.hpp"

namespace unisono::select::same_choice_test {
namespace {

using algorithm::Parameters;
using schedule::Collective;
using schedule::Shape;
using test::circumstances;
using test::shape_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The candidates of a choice share what they have in common, and end early where they are too dear.
// The choice is that of candidates which are priced by themselves, on any machine.
void expect_same_choice(const Shape& shape, Circumstances now, EngineKind engine) {
  now.oversubscribed = engine == EngineKind::helping;
  Pricing pricing = pricing_of(shape, now, engine);
  const auto cheapest = cheapest_candidate(shape, pricing, {});
  const auto rows = cheapest_of_rows(shape, pricing, {});
  pricing.in_full = true;
  const auto in_full = cheapest_candidate(shape, pricing, {});
  const auto rows_in_full = cheapest_of_rows(shape, pricing, {});
  ASSERT_TRUE(cheapest.has_value());
  ASSERT_TRUE(in_full.has_value());
  EXPECT_EQ(cheapest->row, in_full->row);
  EXPECT_EQ(cheapest->parameters, in_full->parameters);
  EXPECT_EQ(cheapest->price.ns, in_full->price.ns);
  EXPECT_EQ(cheapest->is_estimate, in_full->is_estimate);
  ASSERT_EQ(rows.size(), rows_in_full.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].row, rows_in_full[i].row);
    EXPECT_EQ(rows[i].parameters, rows_in_full[i].parameters);
    EXPECT_EQ(rows[i].price.ns, rows_in_full[i].price.ns);
  }
}

void expect_same_choices(std::span<const int> numbers_of_ranks, const model::Machine* machine) {
  Circumstances now = circumstances();
  now.machine = machine;
  for (const EngineKind engine : {EngineKind::inline_, EngineKind::helping}) {
    for (int c = 0; c < schedule::kCollectiveCount; ++c) {
      for (const int ranks : numbers_of_ranks) {
        for (const std::int64_t count : {1, 1000, 100'000}) {
          SCOPED_TRACE(testing::Message() << (machine == nullptr ? "default" : machine->name)
                                          << ", " << engine_name(engine) << ", "
                                          << schedule::collective_name(static_cast<Collective>(c))
                                          << ", " << ranks << " ranks, " << count);
          expect_same_choice(shape_of(static_cast<Collective>(c), ranks, count), now, engine);
        }
      }
    }
  }
}

TEST(CheapestCandidate, IsThatOfCandidatesPricedInFull) {
  expect_same_choices(std::array{2, 3, 7, 8, 12, 16, 17, 33, 64}, nullptr);
}

TEST(CheapestCandidate, IsThatOfCandidatesPricedInFullOnAllMachines) {
  int machines = 0;
  for (const auto& file : std::filesystem::directory_iterator(model::machines_folder())) {
    const auto machine = model::read_machine_file(file.path().string());
    ASSERT_TRUE(machine.ok()) << machine.error().message;
    expect_same_choices(std::array{5, 8, 24}, &*machine);
    ++machines;
  }
  EXPECT_GT(machines, 5);
}

TEST(CheapestCandidate, IsThatOfCandidatesPricedInFullOnSeveralHosts) {
  const std::vector<int> labels = {0, 0, 0, 1, 1, 1, 2, 2, 3};
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const std::int64_t count : {1, 1000, 100'000}) {
      SCOPED_TRACE(testing::Message() << "collective " << c << ", " << count);
      Shape shape = shape_of(static_cast<Collective>(c), static_cast<int>(labels.size()), count);
      shape.hosts = topology::HostMap::of_labels(labels);
      expect_same_choice(shape, circumstances(), EngineKind::inline_);
      shape.hosts = topology::HostMap::apart(shape.ranks);
      expect_same_choice(shape, circumstances(), EngineKind::inline_);
    }
  }
}

// Fewer ranks stand for so many, and estimates end early.
TEST(CheapestCandidate, IsThatOfCandidatesPricedInFullOfManyRanks) {
  constexpr int kMany = 130;
  std::vector<int> labels;
  for (int rank = 0; rank < kMany; ++rank) labels.push_back(rank / 20);
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const std::int64_t count : {1, 20'000}) {
      SCOPED_TRACE(testing::Message() << "collective " << c << ", " << count);
      Shape shape = shape_of(static_cast<Collective>(c), kMany, count);
      if (schedule::is_rooted(shape.collective)) shape.root = 77;
      shape.ordered = schedule::is_reduction(shape.collective);
      expect_same_choice(shape, circumstances(), EngineKind::inline_);
      expect_same_choice(shape, circumstances(), EngineKind::helping);
      shape.hosts = topology::HostMap::of_labels(labels);
      expect_same_choice(shape, circumstances(), EngineKind::inline_);
    }
  }
}

// A book gives the nanoseconds of each candidate alone, to the last bit, and says whether they are
// below a bound. It is asked twice, since it remembers.
TEST(PriceBook, HasThePricesOfCandidatesAlone) {
  const std::vector<int> labels = {0, 0, 0, 1, 1, 1, 2};
  int compared = 0;
  for (const EngineKind engine : {EngineKind::inline_, EngineKind::helping}) {
    for (const bool has_hosts : {false, true}) {
      for (const std::int64_t count : {1, 1000, 100'000}) {
        Circumstances now = circumstances();
        now.oversubscribed = true;
        now.cores = 2;
        for (const algorithm::Algorithm& row : algorithm::table()) {
          Shape shape = shape_of(row.collective, static_cast<int>(labels.size()), count);
          if (has_hosts) shape.hosts = topology::HostMap::of_labels(labels);
          if (schedule::is_rooted(shape.collective)) shape.root = 3;
          shape.exact = row.sums_exactly;
          Pricing pricing = pricing_of(shape, now, engine);
          pricing.in_row = false;
          PriceBook exact(pricing), below(pricing);
          for (const Parameters& each : parameters_to_price(row, shape)) {
            ASSERT_EQ(can_do(row, shape, each), why_not(row, shape, each).empty());
            if (!can_do(row, shape, each)) continue;
            SCOPED_TRACE(testing::Message() << engine_name(engine) << ", " << has_hosts << ", "
                                            << algorithm::describe(row, each) << ", " << count);
            const double ns = price_of(row, each, shape, pricing)->ns;
            const double above = std::nextafter(ns, kInfinity);
            EXPECT_EQ(below.ns_below(ns / 2, row, each, shape, pricing), std::nullopt);
            EXPECT_EQ(below.ns_below(ns, row, each, shape, pricing), std::nullopt);
            EXPECT_EQ(below.ns_below(above, row, each, shape, pricing), ns);
            EXPECT_EQ(below.ns_below(ns, row, each, shape, pricing), std::nullopt);
            for (int times = 0; times < 2; ++times) {
              EXPECT_EQ(exact.ns_below(kInfinity, row, each, shape, pricing), ns);
            }
            EXPECT_FALSE(exact.costs_at_least(above, row, each, shape, pricing));
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace unisono::select::same_choice_test
