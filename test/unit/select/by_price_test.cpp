// SPDX-License-Identifier: BSD-3-Clause
// Which calls go by price, and that choose() does as the table says.
#include "select/by_price.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/unequal_blocks.hpp"
#include "model/default_machine.hpp"
#include "select/candidates.hpp"

namespace unisono::select {
namespace {

using schedule::Collective;
using schedule::Shape;

constexpr int kCores = 2;

Shape shape_of(Collective collective, int ranks, std::int64_t count) {
  return {.collective = collective,
          .ranks = ranks,
          .root = schedule::is_rooted(collective) ? ranks / 2 : 0,
          .count = collective == Collective::barrier ? 0 : count};
}

// Ranks of one host that share memory, as jobs are.
Circumstances on_one_host(int ranks, bool oversubscribed) {
  return {.element_bytes = 8,
          .oversubscribed = oversubscribed,
          .cores = oversubscribed ? kCores : ranks,
          .multicast = true,
          .staged_multicast = true,
          .window_bytes = 128 << 10,
          .op = arith::Operator::sum,
          .type = arith::Type::float64,
          .shared_windows = true};
}

bool is_on(Collective collective, bool oversubscribed) {
  switch (collective) {
    case Collective::barrier:
    case Collective::allreduce:
      return !oversubscribed;
    case Collective::many_to_many:
      return false;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::allgather:
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
      return true;
  }
  return false;
}

TEST(ByPrice, EachCollectiveHasARow) {
  ASSERT_EQ(price_rows().size(), static_cast<std::size_t>(schedule::kCollectiveCount));
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    EXPECT_EQ(price_rows()[static_cast<std::size_t>(c)].collective, static_cast<Collective>(c));
  }
}

TEST(ByPrice, ChooseTakesTheCheapestCandidateWhereTheRowIsOn) {
  int by_price = 0, by_rule = 0;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int ranks : {2, 3, 4, 8, 27, 32}) {
      for (const std::int64_t count : {1, 1000, 100'000}) {
        for (const bool oversubscribed : {false, true}) {
          const Shape shape = shape_of(collective, ranks, count);
          const Circumstances now = on_one_host(ranks, oversubscribed);
          const Choice choice = choose(shape, now);
          ASSERT_EQ(why_not_by_price(shape, now).empty(), is_on(collective, oversubscribed));
          const Choice expected = is_on(collective, oversubscribed) ? *choose_by_price(shape, now)
                                                                    : choose_by_rule(shape, now);
          EXPECT_EQ(choice.origin, expected.origin);
          EXPECT_EQ(choice.algorithm, expected.algorithm);
          EXPECT_EQ(choice.parameters, expected.parameters);
          EXPECT_EQ(choice.reason, expected.reason);
          ++(choice.origin == Origin::price ? by_price : by_rule);
        }
      }
    }
  }
  EXPECT_GT(by_price, 0);
  EXPECT_GT(by_rule, 0);
}

TEST(ByPrice, RulesChooseWherePricesAreNotKnownOrNotMeasured) {
  const Shape shape = shape_of(Collective::broadcast, 4, 100);
  const Circumstances now = on_one_host(4, true);
  ASSERT_EQ(why_not_by_price(shape, now), "");
  const auto expect_rule = [](const Shape& other, const Circumstances& circumstances) {
    EXPECT_NE(why_not_by_price(other, circumstances), "");
    EXPECT_EQ(choose(other, circumstances).origin, Origin::rule);
  };
  Shape other = shape;
  other.ranks = 1;
  other.root = 0;
  expect_rule(other, now);
  other.ranks = kMostRanksByPrice + 1;
  expect_rule(other, now);
  other = shape;
  other.hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1});
  expect_rule(other, now);
  other = shape_of(Collective::allgather, 4, 0);
  other.blocks = test::unequal_blocks(Collective::allgather, 4, 5);
  expect_rule(other, now);
  Circumstances apart = now;
  apart.staged_multicast = false;
  expect_rule(shape, apart);
  Circumstances local = now;
  local.local_counts = true;
  expect_rule(shape_of(Collective::gather, 4, 100), local);
}

// Then no candidate is cheaper than another.
TEST(ByPrice, TheRulesChoiceStaysWhereNoneIsCheaper) {
  model::Machine free = model::default_machine();
  free.hand_over.reset();
  for (model::PathParameters& path : free.paths) {
    for (model::Value* each : {&path.latency, &path.overhead, &path.overhead_per_byte, &path.gap,
                               &path.gap_per_byte, &path.copy_per_byte}) {
      each->number = 0;
    }
    for (auto& point : path.reception.points) point.value.number = 0;
    path.reduction.clear();
    path.start_up.clear();
  }
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const int ranks : {2, 5, 8, 16}) {
      for (const bool oversubscribed : {false, true}) {
        const Shape shape = shape_of(static_cast<Collective>(c), ranks, 1000);
        Circumstances now = on_one_host(ranks, oversubscribed);
        now.machine = &free;
        const Choice by_rule = choose_by_rule(shape, now);
        const auto by_price = choose_by_price(shape, now);
        ASSERT_TRUE(by_price.has_value());
        EXPECT_EQ(by_price->algorithm, by_rule.algorithm);
        EXPECT_EQ(by_price->parameters, by_rule.parameters);
      }
    }
  }
}

double price_of_choice(Collective collective, int ranks, std::int64_t count, bool oversubscribed) {
  const Shape shape = shape_of(collective, ranks, count);
  const Circumstances now = on_one_host(ranks, oversubscribed);
  const Choice choice = choose(shape, now);
  const auto price =
      price_of(*choice.algorithm, choice.parameters, shape, pricing_of(shape, now, choice.engine));
  return price.ok() ? price->ns : 0;
}

// The guidelines of Traeff, Gropp and Thakur (Self-consistent MPI performance guidelines, 2010):
// a collective costs no more than others that do the same together. Here are those that the table
// of algorithms can combine, and that go by price.
TEST(ByPrice, NoChoiceCostsMoreThanItsMockUps) {
  struct MockUp {
    Collective collective;
    std::vector<Collective> others;
    bool others_have_all;  // the second one's vector has the blocks of all ranks
  };
  const std::vector<MockUp> mock_ups = {
      {Collective::allgather, {Collective::gather, Collective::broadcast}, true},
      {Collective::broadcast, {Collective::scatter, Collective::allgather}, false},
      {Collective::allreduce, {Collective::reduce, Collective::broadcast}, false},
      {Collective::reduce, {Collective::allreduce}, false},
  };
  constexpr double kSame = 1.02;  // the rule's choice stays if it costs no more than that
  for (const MockUp& mock_up : mock_ups) {
    for (const int ranks : {2, 4, 8, 16, 32}) {
      for (const std::int64_t count : {1, 64, 4096, 65536}) {
        for (const bool oversubscribed : {false, true}) {
          if (!is_on(mock_up.collective, oversubscribed)) continue;
          const bool splits = mock_up.collective == Collective::broadcast;
          const std::int64_t whole = splits ? count * ranks : count;
          double others = 0;
          for (std::size_t i = 0; i < mock_up.others.size(); ++i) {
            const bool has_all = mock_up.others_have_all && i + 1 == mock_up.others.size();
            others += price_of_choice(mock_up.others[i], ranks, has_all ? count * ranks : count,
                                      oversubscribed);
          }
          EXPECT_LE(price_of_choice(mock_up.collective, ranks, whole, oversubscribed),
                    kSame * others)
              << schedule::collective_name(mock_up.collective) << ", " << ranks << " ranks, "
              << count << " elements" << (oversubscribed ? ", oversubscribed" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::select
