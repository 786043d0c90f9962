// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/mock/slot_counts.hpp"
#include "model/default_machine.hpp"
#include "schedule/cost.hpp"
#include "select/few_ranks.hpp"
#include "select/override.hpp"
#include "select/select.hpp"
#include "unit/model/shipped.hpp"
#include "unit/select/shapes.hpp"

namespace unisono::select::candidates_test {
namespace {

using algorithm::Parameters;
using schedule::Collective;
using schedule::Shape;
using test::circumstances;
using test::shape_of;

constexpr model::Work kSum{.type = arith::Type::float64, .op = arith::Operator::sum};

std::vector<Priced> priced(const Shape& shape, const model::Machine& machine) {
  auto all = price_candidates(shape, {.machine = &machine, .work = kSum});
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

// Three ranks a host: neither rank 1 nor the one in the middle is the first of its host.
TEST(HasAtMost, CountsRanksThatActForTheirHost) {
  constexpr int kRanks = 297;
  std::vector<int> hosts;
  for (int rank = 0; rank < kRanks; ++rank) hosts.push_back(rank / 3);
  for (const algorithm::Algorithm& row : algorithm::table()) {
    Shape shape = shape_of(row.collective, kRanks, 8);
    shape.hosts = topology::HostMap::of_labels(hosts);
    const Parameters usual = algorithm::default_parameters(row, shape);
    if (!algorithm::why_illegal(row, shape, usual).empty()) continue;
    std::int64_t steps = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const schedule::Schedule one = row.build(shape, usual, rank);
      steps += static_cast<std::int64_t>(one.ops.size() + one.targets.size());
    }
    const std::string name =
        std::string(schedule::collective_name(row.collective)) + "/" + std::string(row.name);
    EXPECT_FALSE(has_at_most(steps / 3, row, usual, shape)) << name << " has " << steps;
    EXPECT_TRUE(has_at_most(3 * steps, row, usual, shape)) << name << " has " << steps;
  }
}

// A sender of a mock-up needs the slots of its receivers. Where all send to all, it would build the
// schedules of all ranks for them.
TEST(HasAtMost, AsksForNoSlotsOfAMockUpIfAPartHasTooManySteps) {
  constexpr int kRanks = 257;
  const Shape shape = shape_of(Collective::allreduce, kRanks, 1000);
  const auto& mock = *algorithm::find(Collective::allreduce, "mock-reduce_scatter-allgather");
  const Parameters usual = algorithm::default_parameters(mock, shape);
  algorithm::mock::SlotCounts kept;
  const algorithm::mock::SlotCounts::Use use(kept);
  EXPECT_FALSE(has_at_most(10'000, mock, usual, shape));
  const algorithm::Part& part = mock.parts[1];
  const Shape own = algorithm::shape_of_part(part, shape);
  kept.begin(algorithm::row_of_part(part, usual), algorithm::parameters_of_part(part, usual, own),
             own);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(kept.of(rank), -1);
}

// At such numbers, the ranks by which is_priceable() judges are left over and do little, while the
// others do as much as ever.
TEST(PriceCandidates, NoneHasMoreStepsThanCanBePriced) {
  constexpr int kRanks = 1023;
  const auto& allreduce = *algorithm::find(Collective::allreduce, "recursive-multiplying");
  const auto& allgather = *algorithm::find(Collective::allgather, "hypercube");
  for (const algorithm::Algorithm* row : {&allreduce, &allgather}) {
    const Shape shape = shape_of(row->collective, kRanks, 16);
    const std::vector<Priced> all = priced(shape, model::default_machine());
    int of_row = 0;
    for (const Priced& each : all) {
      if (each.row != row) continue;
      ++of_row;
      std::int64_t steps = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        const schedule::Schedule one = row->build(shape, each.parameters, rank);
        steps += static_cast<std::int64_t>(one.ops.size() + one.targets.size());
      }
      EXPECT_LE(steps, kMostSteps) << algorithm::describe(*row, each.parameters);
    }
    EXPECT_GT(of_row, 1) << row->name;
  }
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
        EXPECT_NE(std::ranges::any_of(all, [&](const Priced& each) { return each.row == &row; }),
                  row.sums_exactly || row.only_for_by_one)
            << row.name;
      }
    }
  }
}

// An exact shape has no other candidates.
TEST(PriceCandidates, OfExactSumsAreExact) {
  Shape shape = shape_of(Collective::allreduce, 5, 40);
  shape.exact = true;
  const auto all = priced(shape, model::default_machine());
  EXPECT_GE(all.size(), 3U);
  for (const Priced& each : all) EXPECT_TRUE(each.row->sums_exactly) << each.row->name;
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
    EXPECT_NEAR(price_of(row, parameters, shape, {.machine = &machine, .work = kSum})->ns,
                model::price(set, machine, kSum).ns, 1e-6)
        << row.name;
    EXPECT_EQ(schedule::cost_of_alike(set[3]), schedule::cost(set)) << row.name;
    Shape apart = shape;
    apart.hosts = topology::HostMap::apart(8);
    for (schedule::Schedule& each : set) each.shape = apart;
    EXPECT_EQ(schedule::cost_between_hosts_of_alike(set[3]), schedule::cost_between_hosts(set))
        << row.name;
    ++from_one;
  }
  EXPECT_GT(from_one, 3);
}

TEST(PriceOf, ALongCallIsOfSegmentsThatFitTheBuffers) {
  const algorithm::Algorithm& chain = *algorithm::find(Collective::broadcast, "chain");
  const Shape shape = shape_of(Collective::broadcast, 8, 1 << 20);
  const Parameters usual = algorithm::default_parameters(chain, shape);
  Pricing pricing{.machine = &model::default_machine(), .work = {.type = arith::Type::float64}};
  const double whole = price_of(chain, usual, shape, pricing)->ns;
  pricing.receive_buffer_bytes = std::int64_t{8} << 20;
  EXPECT_EQ(price_of(chain, usual, shape, pricing)->ns, whole);
  pricing.receive_buffer_bytes = 1 << 20;
  Shape eighth = shape;
  eighth.count /= 8;
  std::vector<schedule::Schedule> set;
  for (int r = 0; r < 8; ++r) set.push_back(*algorithm::build(chain, eighth, usual, r));
  EXPECT_EQ(price_of(chain, usual, shape, pricing)->ns,
            model::price(set, *pricing.machine, pricing.work, {.segments = 8}).ns);
}

// Most candidates are left out by what one rank has to do by itself; none of them is the cheapest.
TEST(CheapestCandidate, OfFewRanksIsTheFirstOfAll) {
  Circumstances now = circumstances();
  for (const EngineKind engine : {EngineKind::inline_, EngineKind::helping}) {
    now.oversubscribed = engine == EngineKind::helping;
    for (int c = 0; c < schedule::kCollectiveCount; ++c) {
      for (const int ranks : {2, 3, 8, 13}) {
        for (const std::int64_t count : {1, 1000, 300'000}) {
          SCOPED_TRACE(testing::Message() << engine_name(engine) << ", collective " << c << ", "
                                          << ranks << " ranks, " << count);
          Shape shape = shape_of(static_cast<Collective>(c), ranks, count);
          if (schedule::is_rooted(shape.collective)) shape.root = ranks - 1;
          const Pricing pricing = pricing_of(shape, now, engine);
          const auto all = price_candidates(shape, pricing);
          ASSERT_TRUE(all.ok());
          const auto cheapest = cheapest_candidate(shape, pricing, {});
          ASSERT_TRUE(cheapest.has_value());
          EXPECT_EQ(cheapest->row, all->front().row);
          EXPECT_EQ(cheapest->parameters, all->front().parameters);
          EXPECT_EQ(cheapest->price.ns, all->front().price.ns);
          const auto rows = cheapest_of_rows(shape, pricing, {});
          ASSERT_FALSE(rows.empty());
          EXPECT_EQ(rows.front().price, cheapest->price);
        }
      }
    }
  }
}

// The zeta of the paper's hybrid. No other one has a lower price by the schedules of all ranks.
TEST(CheapestCandidate, OfTheHypercubeHasTheBestZeta) {
  const algorithm::Algorithm& row = *algorithm::find(Collective::allgather, "hypercube");
  std::set<int> best_ones;
  for (const char* name : {"lemieux", "infiniband-16"}) {
    const model::Machine machine = model::shipped(name);
    for (const int ranks : {4, 8, 13, 16, 32, 64}) {
      for (const std::int64_t bytes : {8, 1000, 16 << 10, 256 << 10}) {
        SCOPED_TRACE(testing::Message() << name << ", " << ranks << " ranks, " << bytes);
        Shape shape = shape_of(Collective::allgather, ranks, bytes);
        shape.hosts = topology::HostMap::apart(ranks);
        const Pricing pricing{.machine = &machine, .work = {.type = arith::Type::byte}};
        std::vector<double> prices;
        for (int zeta = 0; zeta <= row.parameters[0].high; ++zeta) {
          std::vector<schedule::Schedule> set;
          for (int r = 0; r < ranks; ++r) {
            set.push_back(*algorithm::build(row, shape, {{zeta}}, r));
          }
          prices.push_back(model::price(set, machine, pricing.work).ns);
        }
        const auto all = price_candidates(shape, pricing);
        ASSERT_TRUE(all.ok());
        const auto first = std::ranges::find(*all, &row, &Priced::row);
        ASSERT_NE(first, all->end());
        const int chosen = first->parameters.values[0];
        EXPECT_NEAR(first->price.ns, *std::ranges::min_element(prices), 1e-9 * first->price.ns);
        EXPECT_NEAR(prices[static_cast<std::size_t>(chosen)], first->price.ns,
                    1e-9 * first->price.ns);
        best_ones.insert(chosen);
        const auto rows = cheapest_of_rows(shape, pricing, {});
        const auto of_row = std::ranges::find(rows, &row, &Priced::row);
        if (of_row != rows.end() && !of_row->is_estimate && ranks <= kRanksOfParameters) {
          EXPECT_EQ(of_row->parameters, first->parameters);
        }
      }
    }
  }
  EXPECT_GT(best_ones.size(), 2U) << "or the model has nothing to choose";
}

// The bound holds whichever rank gives it, and also on several hosts.
TEST(LeastNs, IsNotAboveThePrice) {
  std::vector<int> hosts = {0, 0, 0, 1, 1, 1, 2};
  int compared = 0, above_none = 0;
  for (const EngineKind engine : {EngineKind::inline_, EngineKind::helping}) {
    for (const bool has_hosts : {false, true}) {
      for (const algorithm::Algorithm& row : algorithm::table()) {
        for (const std::int64_t count : {1, 1000}) {
          Shape shape = shape_of(row.collective, static_cast<int>(hosts.size()), count);
          if (schedule::is_rooted(shape.collective)) shape.root = 3;
          if (has_hosts) shape.hosts = topology::HostMap::of_labels(hosts);
          shape.exact = row.sums_exactly;
          Circumstances now = circumstances();
          now.oversubscribed = true;
          Pricing pricing = pricing_of(shape, now, engine);
          pricing.receive_buffer_bytes = 0;  // all of it at once
          for (const Parameters& parameters : parameters_to_price(row, shape)) {
            if (!why_not(row, shape, parameters).empty() || one_stands_for_all(row, shape))
              continue;
            const double price = price_of(row, parameters, shape, pricing)->ns;
            for (int rank = 0; rank < shape.ranks; ++rank) {
              const schedule::Schedule one = row.build(shape, parameters, rank);
              const double least =
                  model::least_ns(one, *pricing.machine, pricing.work, {}, model::Segments::one);
              EXPECT_LE(least, price) << algorithm::describe(row, parameters) << ", rank " << rank;
              EXPECT_LE(model::least_ns(one, *pricing.machine, pricing.work, {},
                                        model::Segments::as_many_or_more),
                        price);
              ++compared;
              if (least > 0) ++above_none;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(above_none, compared / 2);
}

TEST(CheapestCandidate, IsNotAnExcludedOne) {
  const Shape shape = shape_of(Collective::allreduce, 8, 1);
  const Pricing pricing = pricing_of(shape, circumstances(), EngineKind::inline_);
  const auto overrides = parse_overrides("allreduce:^pairwise;^recursive-multiplying");
  ASSERT_TRUE(overrides.ok());
  const Ruling ruling = rule_on(*overrides, shape, 8);
  const auto cheapest = cheapest_candidate(shape, pricing, ruling);
  ASSERT_TRUE(cheapest.has_value());
  EXPECT_NE(cheapest->row->name, "pairwise");
  EXPECT_NE(cheapest->row->name, "recursive-multiplying");
  Ruling none;
  std::vector<OverrideRule> rules(algorithm::table().size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].algorithm = &algorithm::table()[i];
    rules[i].never = true;
    none.never.push_back(&rules[i]);
  }
  EXPECT_FALSE(cheapest_candidate(shape, pricing, none).has_value());
}

// Also on several hosts, of one rank, of a few and of many.
TEST(CheapestCandidate, OfManyRanksIsLegalAndHasItsOwnPrice) {
  constexpr int kRanks = 300;
  int in_full = 0, estimated = 0;
  std::vector<topology::HostMap> maps = {{}, topology::HostMap::apart(kRanks)};
  for (const int of_host : {3, 20, 150}) {
    std::vector<int> hosts;
    for (int r = 0; r < kRanks; ++r) hosts.push_back(r / of_host);
    maps.push_back(topology::HostMap::of_labels(hosts));
  }
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const topology::HostMap& map : maps) {
      // Half of them need segments.
      Shape shape = shape_of(static_cast<Collective>(c), kRanks, map.given() ? 100 : 2);
      shape.hosts = map;
      if (schedule::is_rooted(shape.collective)) shape.root = 299;
      const Pricing pricing = pricing_of(shape, circumstances(), EngineKind::inline_);
      const auto cheapest = cheapest_candidate(shape, pricing, {});
      ASSERT_TRUE(cheapest.has_value());
      EXPECT_EQ(why_not(*cheapest->row, shape, cheapest->parameters), "");
      if (!is_priceable(*cheapest->row, cheapest->parameters, shape)) continue;
      const double own = price_of(*cheapest->row, cheapest->parameters, shape, pricing)->ns;
      if (cheapest->is_estimate) {
        EXPECT_GT(cheapest->price.ns, 0.6 * own) << c;
        EXPECT_LT(cheapest->price.ns, 1.6 * own) << c;
        ++estimated;
        continue;
      }
      EXPECT_EQ(cheapest->price.ns, own);
      ++in_full;
    }
  }
  EXPECT_GT(in_full, schedule::kCollectiveCount);
  EXPECT_GT(estimated, 0);
}

// The parameters are compared with fewer ranks, and prices of rows are extrapolated from these.
// That costs little against comparing all, also where ranks are left over from a power of two.
TEST(CheapestCandidate, IsNearlyThatOfAllCandidates) {
  double all_logs = 0;
  int cells = 0;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const int ranks : {5, 16, 24, 33, 64}) {
      for (const EngineKind engine : {EngineKind::inline_, EngineKind::helping}) {
        for (const std::int64_t count : {1, 4000}) {
          const auto collective = static_cast<Collective>(c);
          const Shape shape = shape_of(collective, ranks, count);
          Circumstances now = circumstances();
          now.oversubscribed = engine == EngineKind::helping;
          const Pricing pricing = pricing_of(shape, now, engine);
          const auto all = price_candidates(shape, pricing);
          ASSERT_TRUE(all.ok());
          const auto cheapest = cheapest_candidate(shape, pricing, {});
          ASSERT_TRUE(cheapest.has_value());
          const auto own = price_of(*cheapest->row, cheapest->parameters, shape, pricing);
          ASSERT_TRUE(own.ok());
          const double most = ranks <= 16 ? 1.0 : 1.5;
          EXPECT_LE(own->ns, most * all->front().price.ns)
              << schedule::collective_name(collective) << " " << ranks << " " << count << " "
              << engine_name(engine) << ": "
              << algorithm::describe(*cheapest->row, cheapest->parameters) << " against "
              << algorithm::describe(*all->front().row, all->front().parameters);
          all_logs += std::log(own->ns / all->front().price.ns);
          ++cells;
        }
      }
    }
  }
  EXPECT_LE(std::exp(all_logs / cells), 1.02);
}

// Candidates share what their prices have in common. Each price is that of the candidate alone.
TEST(PriceCandidates, GivesEachThePriceThatItHasAlone) {
  const std::vector<int> labels = {0, 0, 0, 0, 1, 1, 2, 2, 2};
  int compared = 0;
  for (const EngineKind engine : {EngineKind::inline_, EngineKind::helping}) {
    for (int c = 0; c < schedule::kCollectiveCount; ++c) {
      for (const bool has_hosts : {false, true}) {
        Shape shape = shape_of(static_cast<Collective>(c), static_cast<int>(labels.size()), 20'000);
        if (has_hosts) shape.hosts = topology::HostMap::of_labels(labels);
        Circumstances now = circumstances();
        now.oversubscribed = true;
        const Pricing pricing = pricing_of(shape, now, engine);
        const auto all = price_candidates(shape, pricing);
        ASSERT_TRUE(all.ok());
        for (const Priced& each : *all) {
          const auto alone = price_of(*each.row, each.parameters, shape, pricing);
          ASSERT_TRUE(alone.ok());
          EXPECT_EQ(each.price, *alone) << algorithm::describe(*each.row, each.parameters) << ", "
                                        << engine_name(engine) << ", " << has_hosts;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 1000);
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
}  // namespace unisono::select::candidates_test
