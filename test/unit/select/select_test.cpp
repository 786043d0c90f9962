// SPDX-License-Identifier: BSD-3-Clause
#include "select/select.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "harness/unequal_blocks.hpp"
#include "model/default_machine.hpp"
#include "select/rules.hpp"

namespace unisono::select::select_test {
namespace {

using schedule::Collective;
using schedule::Shape;

// choose() stops the process if a rule names an unknown algorithm, so walking the shapes is the
// test. The chosen algorithm must build, too, and a rule must be the reason.
TEST(Choose, PicksSomethingLegalForEveryShape) {
  int picks = 0;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (int ranks = 1; ranks <= 70; ++ranks) {
      for (const std::int64_t count : {0, 1, 100, 10'000, 10'000'000}) {
        for (const bool ordered : {false, true}) {
          for (const bool oversubscribed : {false, true}) {
            for (const bool multicast : {false, true}) {
              const auto collective = static_cast<Collective>(c);
              const Shape shape{collective, ranks, schedule::is_rooted(collective) ? ranks / 2 : 0,
                                collective == Collective::barrier ? 0 : count,
                                ordered && schedule::is_reduction(collective)};
              const Choice choice = choose(
                  shape,
                  {.element_bytes = 8, .oversubscribed = oversubscribed, .multicast = multicast});
              ASSERT_TRUE(algorithm::build(*choice.algorithm, shape, choice.parameters, 0).ok());
              ASSERT_NE(choice.origin, Origin::override_);
              ASSERT_FALSE(choice.reason.empty());
              ++picks;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(picks, schedule::kCollectiveCount * 70 * 5 * 8);
}

// Not even where the machine file has single copies from 0 bytes on.
TEST(PrefersSingleCopy, IsFalseWithoutBytes) {
  model::Machine machine = model::default_machine();
  auto& from = machine.constants[static_cast<std::size_t>(model::Constant::single_copy_from)];
  from->number = 0;
  const Circumstances now{.element_bytes = 8, .pull = true, .machine = &machine};
  EXPECT_TRUE(
      prefers_single_copy({.collective = Collective::broadcast, .ranks = 2, .count = 1}, now));
  EXPECT_FALSE(prefers_single_copy({.collective = Collective::broadcast, .ranks = 2}, now));
  EXPECT_FALSE(prefers_single_copy({.collective = Collective::barrier, .ranks = 2}, now));
}

// Whether or not choose() takes it.
TEST(ChooseByPrice, IsLegalForEveryShapeAndTheSameForAllWithOneMachine) {
  int picks = 0;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const int ranks : {1, 2, 3, 5, 8, 13, 32, 33, 70}) {
      for (const std::int64_t count : {0, 1, 100, 100'000}) {
        for (const bool ordered : {false, true}) {
          for (const bool oversubscribed : {false, true}) {
            const auto collective = static_cast<Collective>(c);
            const Shape shape{collective, ranks, schedule::is_rooted(collective) ? ranks / 2 : 0,
                              collective == Collective::barrier ? 0 : count,
                              ordered && schedule::is_reduction(collective)};
            const Circumstances now{.element_bytes = 8,
                                    .oversubscribed = oversubscribed,
                                    .cores = 2,
                                    .multicast = true,
                                    .staged_multicast = true,
                                    .receive_buffer_bytes = 128 << 10,
                                    .op = arith::Operator::max,
                                    .type = arith::Type::int64,
                                    .shared_receive_buffers = true};
            const auto choice = choose_by_price(shape, now);
            ASSERT_EQ(choice.has_value(), ranks > 1);
            if (!choice) continue;
            ASSERT_EQ(why_not(*choice->algorithm, shape, choice->parameters), "");
            ASSERT_EQ(choice->origin, Origin::price);
            ASSERT_FALSE(choice->reason.empty());
            const auto again = choose_by_price(shape, now);
            ASSERT_EQ(choice->algorithm, again->algorithm);
            ASSERT_EQ(choice->parameters, again->parameters);
            ++picks;
          }
        }
      }
    }
  }
  EXPECT_EQ(picks, schedule::kCollectiveCount * 8 * 4 * 4);
}

TEST(ChooseByPrice, FollowsTheMachineFile) {
  model::Machine machine = model::default_machine();
  const Shape shape{.collective = Collective::allreduce, .ranks = 16, .count = 1};
  const Circumstances now{.element_bytes = 8,
                          .cores = 16,
                          .machine = &machine,
                          .op = arith::Operator::sum,
                          .type = arith::Type::float64};
  for (model::PathParameters& path : machine.paths) {
    path.latency = {.number = 1, .unit = model::Unit::ms, .where = "test"};
  }
  EXPECT_EQ(choose_by_price(shape, now)->algorithm->name, "recursive-multiplying");
  for (model::PathParameters& path : machine.paths) {
    path.latency = {.number = 1, .unit = model::Unit::ns, .where = "test"};
    path.overhead = {.number = 1, .unit = model::Unit::ms, .where = "test"};
  }
  EXPECT_NE(choose_by_price(shape, now)->algorithm->name, "recursive-multiplying");
}

TEST(ChooseByPrice, KeepsAnExcludedAlgorithmOut) {
  const Shape shape{.collective = Collective::barrier, .ranks = 8};
  const Circumstances now{.cores = 8};
  const auto free = choose_by_price(shape, now);
  const auto overrides = parse_overrides("barrier:^" + std::string(free->algorithm->name));
  ASSERT_TRUE(overrides.ok());
  EXPECT_NE(choose_by_price(shape, now, *overrides)->algorithm, free->algorithm);
}

TEST(Choose, PicksSomethingLegalForUnequalBlocks) {
  int picks = 0;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (!schedule::has_blocks(collective)) continue;
    for (int ranks = 1; ranks <= 40; ++ranks) {
      for (const bool oversubscribed : {false, true}) {
        for (const bool multicast : {false, true}) {
          Shape shape{.collective = collective, .ranks = ranks};
          shape.ordered = schedule::is_reduction(collective);
          shape.blocks = unisono::test::unequal_blocks(collective, ranks, 5);
          const Choice choice = choose(
              shape,
              {.element_bytes = 8, .oversubscribed = oversubscribed, .multicast = multicast});
          ASSERT_TRUE(algorithm::build(*choice.algorithm, shape, choice.parameters, 0).ok());
          ++picks;
        }
      }
    }
  }
  EXPECT_EQ(picks, 6 * 40 * 4);
}

// Where a rank may know its own counts only, others have to come to the same choice from theirs.
// As measured: pieces that travel between turns on a core are slower than one way up and down.
TEST(Choose, SplitsALongVectorOnlyWhereRanksHaveCores) {
  const Shape longer{.collective = Collective::allreduce, .ranks = 4, .count = 100'000};
  const Circumstances oversubscribed{.element_bytes = 8, .oversubscribed = true, .multicast = true};
  const Circumstances roomy{.element_bytes = 8, .oversubscribed = false, .multicast = true};
  EXPECT_EQ(choose(longer, oversubscribed).algorithm->name, "reduce-broadcast");
  EXPECT_EQ(choose(longer, roomy).algorithm->name, "ring");
  Shape shorter = longer;
  shorter.count = 100;
  EXPECT_EQ(choose(shorter, oversubscribed).algorithm->name, "gather-release");
}

// As measured on 2 cores, from the length on at which a vector is split (bench/choice).
TEST(Choose, GoesByPriceForLongCallsOfHelpedRanksAndSomeShortOnes) {
  const Shape longer{.collective = Collective::allreduce, .ranks = 8, .count = 16'384};
  const Circumstances helped{.element_bytes = 8,
                             .oversubscribed = true,
                             .cores = 2,
                             .multicast = true,
                             .staged_multicast = true,
                             .receive_buffer_bytes = 128 << 10,
                             .op = arith::Operator::sum,
                             .type = arith::Type::float64,
                             .shared_receive_buffers = true};
  const Choice choice = choose(longer, helped);
  EXPECT_EQ(choice.origin, Origin::price);
  EXPECT_EQ(choice.engine, EngineKind::helping);
  EXPECT_EQ(choice.algorithm, choose_by_price(longer, helped)->algorithm);
  EXPECT_NE(choice.algorithm, choose_by_rule(longer, helped).algorithm);
  EXPECT_TRUE(algorithm::build(*choice.algorithm, longer, choice.parameters, 0).ok());
  const auto by_rule = [](const Shape& shape, const Circumstances& now) {
    return choose(shape, now).origin == Origin::rule;
  };
  Shape other = longer;
  other.count = 512;
  EXPECT_TRUE(by_rule(other, helped)) << "short";
  other = longer;
  other.exact = true;
  EXPECT_TRUE(by_rule(other, helped)) << "reproducible";
  other = longer;
  other.collective = Collective::barrier;
  other.count = 0;
  EXPECT_TRUE(by_rule(other, helped)) << "a barrier";
  for (const Collective collective :
       {Collective::reduce, Collective::broadcast, Collective::allgather, Collective::gather,
        Collective::scatter, Collective::alltoall, Collective::reduce_scatter}) {
    other = longer;
    other.collective = collective;
    if (schedule::has_blocks(collective)) other.count /= other.ranks;
    EXPECT_FALSE(by_rule(other, helped)) << schedule::collective_name(collective);
    EXPECT_EQ(choose(other, helped).algorithm, choose_by_price(other, helped)->algorithm);
    // Short calls go by price where prices were measured to choose at least as well.
    other.count = 2;
    const bool priced = collective == Collective::broadcast || collective == Collective::scatter ||
                        collective == Collective::reduce_scatter;
    EXPECT_EQ(by_rule(other, helped), !priced)
        << "short: " << schedule::collective_name(collective);
  }
  for (const Collective collective : {Collective::scan, Collective::exscan}) {
    other = longer;
    other.collective = collective;
    other.count = 2;
    EXPECT_EQ(by_rule(other, helped), collective == Collective::exscan);
  }
  Circumstances alone = helped;
  alone.engine = base::EngineChoice::inline_;
  EXPECT_TRUE(by_rule(longer, alone)) << "ranks that do not help each other";
  model::Machine unsure = model::default_machine();
  unsure.price_error.reset();
  Circumstances busy = helped;
  busy.machine = &unsure;
  EXPECT_TRUE(by_rule(longer, busy)) << "a file whose prices have no known error";
  const auto overrides = parse_overrides("allreduce:ring");
  ASSERT_TRUE(overrides.ok());
  EXPECT_EQ(choose(longer, helped, *overrides).algorithm->name, "ring");
}

topology::HostMap in_fours(int ranks) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / 4);
  return topology::HostMap::of_labels(hosts);
}

// With what was chosen before, in whatever order, the choice is the one without.
TEST(Choose, IsTheSameWithKnownChoices) {
  Circumstances now{.element_bytes = 8,
                    .oversubscribed = true,
                    .cores = 2,
                    .multicast = true,
                    .staged_multicast = true,
                    .receive_buffer_bytes = 1 << 20,
                    .shared_receive_buffers = true};
  constexpr int kRanks = 5;
  KnownChoices known;
  const auto same = [&](const Shape& shape, const Overrides& overrides) {
    const Choice one = choose(shape, now, overrides, &known), other = choose(shape, now, overrides);
    ASSERT_EQ(why_not(*one.algorithm, shape, one.parameters), "");
    EXPECT_EQ(one.algorithm, other.algorithm);
    EXPECT_EQ(one.parameters, other.parameters);
    EXPECT_EQ(one.reason, other.reason);
    EXPECT_EQ(one.origin, other.origin);
  };
  for (const Collective collective :
       {Collective::allreduce, Collective::broadcast, Collective::allgather, Collective::reduce}) {
    const bool reduces = schedule::is_reduction(collective);
    for (const auto type : {arith::Type::float64, arith::Type::int64}) {
      now.type = type;
      now.op = reduces ? std::optional(arith::Operator::sum) : std::nullopt;
      for (const std::int64_t count :
           {16384, 16385, 17000, 18431, 18432, 18433, 30000, 20000, 16384}) {
        for (const int root : {0, kRanks - 1}) {
          same({.collective = collective,
                .ranks = kRanks,
                .root = schedule::is_rooted(collective) ? root : 0,
                .count = count,
                .ordered = reduces && root != 0},
               {});
        }
      }
    }
  }
  // A length has its class's choice, and there are fewer classes than lengths.
  Shape shape{.collective = Collective::allreduce, .ranks = kRanks, .count = 16384};
  now.type = arith::Type::float64;
  now.op = arith::Operator::sum;
  const Choice first = choose(shape, now);
  ASSERT_EQ(first.origin, Origin::price);
  shape.count = 18431;
  EXPECT_EQ(choose(shape, now).algorithm, first.algorithm);
  EXPECT_EQ(choose(shape, now).parameters, first.parameters);
  known.own.clear();
  for (shape.count = 16384; shape.count < 32768; shape.count += 64) choose(shape, now, {}, &known);
  EXPECT_EQ(known.own.size(), 8U);
}

// A user's rule that ends within a class holds for its lengths only.
TEST(Choose, KnownChoicesDoNotHideARuleForSomeLengths) {
  const Circumstances now{.element_bytes = 8,
                          .oversubscribed = true,
                          .cores = 2,
                          .staged_multicast = true,
                          .receive_buffer_bytes = 1 << 20,
                          .op = arith::Operator::sum,
                          .type = arith::Type::float64,
                          .shared_receive_buffers = true};
  Shape shape{.collective = Collective::allreduce, .ranks = 5, .count = 17000};
  const std::string usual(choose(shape, now).algorithm->name);
  const auto overrides = parse_overrides("allreduce:^" + usual + "@130K-134K");  // 16640 to 17152
  ASSERT_TRUE(overrides.ok());
  for (const std::int64_t before : {16384, 17000}) {
    KnownChoices known;
    shape.count = before;
    choose(shape, now, *overrides, &known);
    shape.count = 17000;
    EXPECT_NE(choose(shape, now, *overrides, &known).algorithm->name, usual);
    shape.count = 16384;
    EXPECT_EQ(choose(shape, now, *overrides, &known).algorithm->name, usual);
    shape.count = 18000;
    EXPECT_EQ(choose(shape, now, *overrides, &known).algorithm->name, usual);
  }
}

TEST(Choose, OfUnequalBlocksDependsOnNoCountsThatARankMayNotKnow) {
  for (const Collective collective :
       {Collective::gather, Collective::scatter, Collective::alltoall}) {
    for (const int ranks : {2, 9, 40}) {
      Shape shape{.collective = collective, .ranks = ranks};
      const auto pick = [&](std::uint64_t seed) {
        shape.blocks = unisono::test::unequal_blocks(collective, ranks, seed);
        return choose(shape, {.element_bytes = static_cast<std::int64_t>(seed)});
      };
      EXPECT_TRUE(pick(1).algorithm->local_counts);
      EXPECT_EQ(pick(1).algorithm, pick(100'000).algorithm);
      shape.hosts = in_fours(ranks);
      EXPECT_TRUE(pick(1).algorithm->local_counts);
    }
  }
}

// The packets that are saved have to pay for the steps that are more.
TEST(Choose, TwoLevelsOfBlocksWhereManyRanksShareAHost) {
  const auto name = [](Collective collective, int of_host, std::int64_t bytes) {
    Shape shape{.collective = collective, .ranks = 3 * of_host, .count = bytes};
    std::vector<int> hosts;
    for (int r = 0; r < shape.ranks; ++r) hosts.push_back(r / of_host);
    shape.hosts = topology::HostMap::of_labels(hosts);
    return choose(shape, {.multicast = true}).algorithm->name;
  };
  EXPECT_EQ(name(Collective::scatter, 2, 8), "two-level");
  EXPECT_EQ(name(Collective::scatter, 2, 100'000), "linear");
  EXPECT_EQ(name(Collective::gather, 2, 8), "linear");
  EXPECT_EQ(name(Collective::gather, 4, 8), "two-level");
  EXPECT_EQ(name(Collective::alltoall, 2, 8), "multi-leader");
  EXPECT_EQ(name(Collective::alltoall, 4, 16384), "multi-leader");
  EXPECT_EQ(name(Collective::alltoall, 4, 16388), "linear");
  EXPECT_EQ(name(Collective::reduce_scatter, 2, 8), "two-level");
  EXPECT_EQ(name(Collective::reduce_scatter, 4, 131072), "two-level");
  EXPECT_EQ(name(Collective::reduce_scatter, 4, 131076), "ring");
  EXPECT_EQ(name(Collective::scan, 2, 8), "linear");
  EXPECT_EQ(name(Collective::scan, 4, 8), "two-level");
  EXPECT_EQ(name(Collective::exscan, 2, 100'000), "linear");
}

TEST(Choose, OneRankCombinesForAllWhereRanksOutnumberCores) {
  const Shape shape{Collective::allreduce, 8, 0, 1, false};
  EXPECT_EQ(choose(shape, {.element_bytes = 8, .oversubscribed = true, .multicast = true})
                .algorithm->name,
            "gather-release");
  EXPECT_EQ(choose(shape, {.element_bytes = 8, .oversubscribed = false, .multicast = true})
                .algorithm->name,
            "pairwise");
}

// Where one message cannot release all, rank 0 would send P-1 one after another.
// With blocks of all at once, the links into the hosts would overflow.
TEST(Choose, OnlyShortBlocksOfAllRanksAreMulticastBetweenHosts) {
  const auto name = [](const std::vector<int>& hosts, std::int64_t count) {
    Shape shape{.collective = Collective::allgather, .ranks = 4, .count = count};
    shape.hosts = topology::HostMap::of_labels(hosts);
    const Circumstances now{.multicast = true, .leaders_multicast = true};
    const Choice choice = choose(shape, now);
    return algorithm::describe(*choice.algorithm, choice.parameters);
  };
  EXPECT_EQ(name({0, 1, 2, 3}, 8), "direct");
  EXPECT_EQ(name({0, 1, 2, 3}, 1 << 20), "ring");
  EXPECT_NE(name({0, 0, 1, 1}, 8).find("direct"), std::string::npos);
  EXPECT_NE(name({0, 0, 1, 1}, 1 << 20).find("ring"), std::string::npos);
}

// Ranks that share hosts go as before.
TEST(Choose, OnlyShortSumsOfAllHostsAreMulticast) {
  const auto name = [](const std::vector<int>& hosts, std::int64_t count, bool multicast) {
    Shape shape{.collective = Collective::reduce_scatter, .ranks = 4, .count = count};
    shape.hosts = topology::HostMap::of_labels(hosts);
    const Choice choice = choose(shape, {.element_bytes = 8, .multicast = multicast});
    return algorithm::describe(*choice.algorithm, choice.parameters);
  };
  EXPECT_EQ(name({0, 1, 2, 3}, 1, true).find("mock-allreduce(gather-release"), 0U);
  EXPECT_EQ(name({0, 1, 2, 3}, 1, false), "pairwise");
  EXPECT_EQ(name({0, 1, 2, 3}, 1 << 16, true), "pairwise");
  Shape unequal{.collective = Collective::reduce_scatter, .ranks = 4};
  unequal.blocks = *schedule::Blocks::of_ranks({1, 2, 1, 2});
  unequal.hosts = topology::HostMap::apart(4);
  const Circumstances multicasts{.element_bytes = 8, .multicast = true};
  EXPECT_EQ(choose(unequal, multicasts).algorithm->name, "mock-allreduce");
  unequal.blocks = *schedule::Blocks::of_ranks({1 << 15, 1 << 16, 1 << 15, 1 << 16});
  EXPECT_EQ(choose(unequal, multicasts).algorithm->name, "pairwise");
}

// Two hosts have nothing to gather: each sends the other one a packet, in one step.
TEST(Choose, TwoHostsExchangeWhereMoreGatherAndRelease) {
  const auto name = [](Collective collective, const std::vector<int>& hosts) {
    Shape shape{.collective = collective, .ranks = static_cast<int>(hosts.size()), .count = 2};
    if (collective == Collective::barrier) shape.count = 0;
    shape.hosts = topology::HostMap::of_labels(hosts);
    const bool alone = shape.hosts.are_alone();
    const Circumstances now{.element_bytes = 4, .multicast = alone, .leaders_multicast = true};
    const Choice choice = choose(shape, now);
    return algorithm::describe(*choice.algorithm, choice.parameters);
  };
  EXPECT_EQ(name(Collective::barrier, {0, 1}), "dissemination");
  EXPECT_EQ(name(Collective::barrier, {0, 1, 2}).find("gather-release"), 0U);
  EXPECT_EQ(name(Collective::barrier, {0, 0, 1, 1}).find("two-level(dissemination"), 0U);
  EXPECT_EQ(name(Collective::barrier, {0, 0, 1, 1, 2, 2}).find("two-level(gather-release"), 0U);
  EXPECT_EQ(name(Collective::reduce_scatter, {0, 1}), "pairwise");
  EXPECT_EQ(name(Collective::reduce_scatter, {0, 1, 2}).find("mock-allreduce(gather-release"), 0U);
}

// Where hosts share the cores of one machine, the number of messages counts, and no longer path.
TEST(Choose, HostsThatShareCoresSendFewMessages) {
  const auto name = [](Collective collective, std::int64_t bytes, int ranks, int shared_cores,
                       bool streams = true) {
    Shape shape{.collective = collective, .ranks = ranks, .count = bytes / 4};
    shape.hosts = topology::HostMap::apart(ranks);
    const Circumstances now{
        .element_bytes = 4, .shared_cores = shared_cores, .multicast = true, .streams = streams};
    return std::string(choose(shape, now).algorithm->name);
  };
  constexpr std::int64_t kKiB = 1024;
  for (const int cores : {0, 4, 64}) {  // not known, or as many as ranks
    EXPECT_EQ(name(Collective::allreduce, 64 * kKiB, 4, cores), "reduce-scatter-allgather");
    EXPECT_EQ(name(Collective::allgather, 8, 4, cores), "direct");
    EXPECT_EQ(name(Collective::allgather, 128 * kKiB, 4, cores), "ring");
    EXPECT_EQ(name(Collective::alltoall, 8, 4, cores), "linear");
    EXPECT_EQ(name(Collective::reduce_scatter, 2 * kKiB, 4, cores), "mock-allreduce");
  }
  for (const int ranks : {4, 8}) {
    EXPECT_EQ(name(Collective::allreduce, 64 * kKiB, ranks, 2, false), "gather-release");
    EXPECT_EQ(name(Collective::allreduce, 8192 * kKiB, ranks, 2), "reduce-scatter-allgather");
    EXPECT_EQ(name(Collective::allreduce, 8192 * kKiB, ranks, 2, false), "ring");
    EXPECT_EQ(name(Collective::allreduce, 8192 * kKiB, ranks, 0), "ring") << "links limit it";
    EXPECT_EQ(name(Collective::allreduce, 8192 * kKiB, ranks - 1, 2), "ring");
    EXPECT_EQ(name(Collective::allgather, 8, ranks, 2), "gather-release");
    EXPECT_EQ(name(Collective::allgather, kKiB, ranks, 2),
              ranks == 8 ? "gather-release" : "direct");
    EXPECT_EQ(name(Collective::allgather, 2 * kKiB, ranks, 2), "direct");
    EXPECT_EQ(name(Collective::allgather, 128 * kKiB, ranks, 2, false), "direct");
    EXPECT_EQ(name(Collective::allgather, 512 * kKiB, ranks, 2), "ring");
    EXPECT_EQ(name(Collective::alltoall, 8, ranks, 2), "bruck");
    EXPECT_EQ(name(Collective::alltoall, 8 * kKiB / ranks, ranks, 2), "bruck");
    EXPECT_EQ(name(Collective::alltoall, 8 * kKiB / ranks + 4, ranks, 2), "linear");
    EXPECT_EQ(name(Collective::reduce_scatter, 8, ranks, 2), "mock-allreduce");
    EXPECT_EQ(name(Collective::reduce_scatter, 2 * kKiB, ranks, 2), "recursive-halving");
    EXPECT_EQ(name(Collective::reduce_scatter, 16 * kKiB, ranks, 2), "pairwise");
  }
  EXPECT_EQ(name(Collective::alltoall, 8, 3, 2), "linear") << "as many messages in fewer steps";
}

// The kernel sends and receives many packets of a stream at once.
TEST(Choose, HostsThatShareCoresTakeStreamsForMiddleSizes) {
  const auto name = [](Collective collective, int hosts, int of_host, std::int64_t bytes,
                       bool streams = true, int cores = 2) {
    std::vector<int> labels;
    for (int rank = 0; rank < hosts * of_host; ++rank) labels.push_back(rank / of_host);
    Shape shape{.collective = collective, .ranks = hosts * of_host, .count = bytes / 4};
    shape.hosts = topology::HostMap::of_labels(labels);
    const Circumstances now{.element_bytes = 4,
                            .shared_cores = cores,
                            .multicast = of_host == 1,
                            .leaders_multicast = true,
                            .streams = streams};
    const Choice choice = choose(shape, now);
    return algorithm::describe(*choice.algorithm, choice.parameters);
  };
  const model::Machine& machine = model::default_machine();
  const auto from = model::constant_of(machine, model::Constant::streamed_on_shared_cores).count();
  const auto few =
      static_cast<int>(model::constant_of(machine, model::Constant::few_ranks).count());
  EXPECT_EQ(name(Collective::broadcast, 3, 1, from), "fnomial(2)");
  EXPECT_EQ(name(Collective::broadcast, 3, 1, from - 4), "flat");
  EXPECT_EQ(name(Collective::broadcast, 3, 1, from, false), "flat");
  EXPECT_EQ(name(Collective::broadcast, few + 1, 1, from), "flat");
  EXPECT_EQ(name(Collective::broadcast, 4, 2, from), "two-level(fnomial,root)");
  EXPECT_EQ(name(Collective::broadcast, 4, 2, from - 4), "two-level(flat,first)");
  EXPECT_EQ(name(Collective::allgather, 4, 1, from), "recursive-doubling");
  EXPECT_EQ(name(Collective::allgather, 6, 1, from), "bruck");
  EXPECT_EQ(name(Collective::allgather, 6, 1, from - 4), "direct");
  EXPECT_EQ(name(Collective::allgather, 6, 1, from, false), "direct");
  EXPECT_EQ(name(Collective::allgather, 2, 2, from), "two-level(recursive-doubling)");
  EXPECT_EQ(name(Collective::allgather, 2, 2, from - 4), "two-level(direct)");
  EXPECT_EQ(name(Collective::reduce, 8, 1, from), "fnomial(4)");
  EXPECT_EQ(name(Collective::reduce, 8, 1, from, false), "serial");
  EXPECT_EQ(name(Collective::reduce, 8, 1, from - 4), "serial");
  const auto below = model::constant_of(machine, model::Constant::combined_by_tree_below).count();
  EXPECT_EQ(name(Collective::reduce, 5, 1, below - 4), "fnomial(4)");
  EXPECT_EQ(name(Collective::reduce, 8, 1, below), "serial");
  EXPECT_EQ(name(Collective::reduce, 4, 1, from), "serial") << "two hosts for each core";
  EXPECT_EQ(name(Collective::allreduce, 8, 1, 8 * from), "reduce-scatter-allgather");
  const auto bound = model::constant_of(machine, model::Constant::link_bound_from).count();
  EXPECT_EQ(name(Collective::allreduce, 4, 2, bound).find("two-level(reduce-scatter-allgather"),
            0U);
  EXPECT_EQ(name(Collective::allreduce, 3, 2, bound).find("two-level(ring"), 0U);
  EXPECT_EQ(name(Collective::allreduce, 2, 2, bound).find("two-level(ring"), 0U);
  const auto whole = model::constant_of(machine, model::Constant::exchanged_whole).count();
  for (const int hosts : {3, 4}) {
    EXPECT_EQ(name(Collective::allreduce, hosts, 1, hosts * from), "pairwise");
    EXPECT_EQ(name(Collective::allreduce, hosts, 1, whole), "pairwise");
    EXPECT_EQ(name(Collective::allreduce, hosts, 1, whole + 4), "reduce-scatter-allgather");
    EXPECT_NE(name(Collective::allreduce, hosts, 1, hosts * from, false), "pairwise");
  }
  const auto most =
      static_cast<int>(model::constant_of(machine, model::Constant::exchanged_whole_by).count());
  EXPECT_EQ(name(Collective::allreduce, most, 1, most * from, true, most - 1), "pairwise");
  EXPECT_NE(name(Collective::allreduce, most + 1, 1, (most + 1) * from, true, most), "pairwise");
  for (const int hosts : {3, 4, 8}) {
    EXPECT_EQ(name(Collective::allreduce, hosts, 1, hosts * (from - 4)),
              "gather-release(" + std::to_string(hosts == 8 ? 7 : hosts) + ")");
  }
  EXPECT_EQ(name(Collective::allreduce, 4, 2, from), "two-level(pairwise,7)");
  // The host that combines receives three vectors.
  EXPECT_EQ(name(Collective::allreduce, 4, 2, 2 * from / 3 + 4), "two-level(pairwise,7)");
  EXPECT_EQ(name(Collective::allreduce, 4, 2, 2 * from / 3 - 4), "two-level(gather-release,7)");
}

// A message between hosts costs both processors. Where the chain is long, few steps are better.
TEST(Choose, AFewHostsScanInAChain) {
  const model::Machine& machine = model::default_machine();
  const auto few =
      static_cast<int>(model::constant_of(machine, model::Constant::few_ranks).count());
  const auto many =
      static_cast<int>(model::constant_of(machine, model::Constant::many_of_host).count());
  const auto name = [](Collective collective, int hosts, int of_host, bool cyclic) {
    std::vector<int> labels;
    for (int rank = 0; rank < hosts * of_host; ++rank) {
      labels.push_back(cyclic ? rank % hosts : rank / of_host);
    }
    Shape shape{.collective = collective, .ranks = hosts * of_host, .count = 1024};
    shape.hosts = topology::HostMap::of_labels(labels);
    return choose(shape, {.multicast = shape.hosts.are_alone()}).algorithm->name;
  };
  for (const Collective collective : {Collective::scan, Collective::exscan}) {
    EXPECT_EQ(name(collective, few, 1, false), "linear");
    EXPECT_EQ(name(collective, few + 1, 1, false), "recursive-doubling");
    EXPECT_EQ(name(collective, few, many - 1, false), "linear");
    EXPECT_EQ(name(collective, few, many, false), "two-level");
    EXPECT_EQ(name(collective, few + 1, many - 1, false), "two-level");
    EXPECT_EQ(name(collective, few, many - 1, true), "recursive-doubling") << "not neighbours";
    const Shape together{.collective = collective, .ranks = 4, .count = 1024};
    EXPECT_EQ(choose(together, {}).algorithm->name, "recursive-doubling");
    Shape longer{.collective = collective, .ranks = few + 1, .count = 1 << 20};
    longer.hosts = topology::HostMap::apart(few + 1);
    EXPECT_EQ(choose(longer, {}).algorithm->name, "linear");
  }
}

// Packets cost processor time before links are full, so few rounds are fastest. This changes if
// surplus hosts would send whole vectors to others, or if vectors fill links.
TEST(Choose, LongVectorsBetweenHostsTakeFewStepsUntilTheyFillLinks) {
  const auto name = [](int hosts, int ranks_of_host, std::int64_t bytes) {
    std::vector<int> labels;
    for (int rank = 0; rank < hosts * ranks_of_host; ++rank) labels.push_back(rank / ranks_of_host);
    Shape shape{
        .collective = Collective::allreduce, .ranks = hosts * ranks_of_host, .count = bytes / 4};
    shape.hosts = topology::HostMap::of_labels(labels);
    const Circumstances now{.element_bytes = 4, .multicast = true, .leaders_multicast = true};
    const Choice choice = choose(shape, now);
    const std::string described = algorithm::describe(*choice.algorithm, choice.parameters);
    return described.substr(0, described.rfind(ranks_of_host == 1 ? '(' : ','));
  };
  constexpr std::int64_t kKiB = 1024;
  EXPECT_EQ(name(8, 1, 16 * kKiB), "gather-release");
  EXPECT_EQ(name(8, 1, 17 * kKiB), "reduce-scatter-allgather");
  EXPECT_EQ(name(8, 1, 1023 * kKiB), "reduce-scatter-allgather");
  EXPECT_EQ(name(8, 1, 1024 * kKiB), "ring");
  const auto folded =
      model::constant_of(model::default_machine(), model::Constant::folded_below).count();
  ASSERT_GT(folded, 17 * kKiB);
  for (const int hosts : {3, 5, 6, 7}) {
    EXPECT_EQ(name(hosts, 1, 16 * kKiB), "gather-release") << hosts;
    EXPECT_EQ(name(hosts, 1, folded - 4), "reduce-scatter-allgather") << hosts;
    EXPECT_EQ(name(hosts, 1, folded), "ring") << hosts;
  }
  EXPECT_EQ(name(12, 1, 64 * kKiB), "reduce-scatter-allgather");
  EXPECT_EQ(name(8, 2, 64 * kKiB), "two-level(reduce-scatter-allgather");
  EXPECT_EQ(name(6, 2, folded - 4), "two-level(reduce-scatter-allgather");
  EXPECT_EQ(name(6, 2, folded), "two-level(ring");
}

// Bursts of multicast overflow queues on the way. Streams adapt to them, and a chain of few hosts
// sends as many bytes over each link.
TEST(Choose, ALongBroadcastBetweenFewHostsGoesByStreams) {
  const auto name = [](int hosts, int ranks_of_host, std::int64_t bytes, bool streams) {
    std::vector<int> labels;
    for (int rank = 0; rank < hosts * ranks_of_host; ++rank) labels.push_back(rank / ranks_of_host);
    Shape shape{
        .collective = Collective::broadcast, .ranks = hosts * ranks_of_host, .count = bytes};
    shape.hosts = topology::HostMap::of_labels(labels);
    const Circumstances now{
        .multicast = ranks_of_host == 1, .leaders_multicast = true, .streams = streams};
    const Choice choice = choose(shape, now);
    const std::string described = algorithm::describe(*choice.algorithm, choice.parameters);
    return described.substr(0, described.find(','));
  };
  const model::Machine& machine = model::default_machine();
  const auto from = model::constant_of(machine, model::Constant::link_bound_from).count();
  const auto few =
      static_cast<int>(model::constant_of(machine, model::Constant::few_ranks).count());
  EXPECT_EQ(name(3, 1, from, true), "chain(8)");
  EXPECT_EQ(name(few, 1, from, true), "chain(8)");
  EXPECT_EQ(name(3, 2, from, true), "two-level(chain");
  EXPECT_EQ(name(3, 1, from, false), "flat");
  EXPECT_EQ(name(3, 2, from, false), "two-level(flat");
  EXPECT_EQ(name(few + 1, 1, from, true), "flat");
  EXPECT_EQ(name(2, 1, from, true), "flat");
  const auto middle = model::constant_of(machine, model::Constant::streamed_broadcast).count();
  ASSERT_LT(middle, from);
  EXPECT_EQ(name(3, 1, from - 1, true), "fnomial(2)");
  EXPECT_EQ(name(few, 1, middle, true), "fnomial(2)");
  EXPECT_EQ(name(3, 1, middle, false), "flat");
  EXPECT_EQ(name(3, 1, middle - 1, true), "flat");
  EXPECT_EQ(name(few + 1, 1, middle, true), "flat");
  EXPECT_EQ(name(3, 2, from - 1, true), "two-level(flat");
}

TEST(Choose, LongBlocksForAllOfAFewHostsGoByStreams) {
  const auto name = [](int hosts, std::int64_t bytes, bool streams) {
    std::vector<int> labels(static_cast<std::size_t>(hosts));
    std::iota(labels.begin(), labels.end(), 0);
    Shape shape{.collective = Collective::allgather, .ranks = hosts, .count = bytes};
    shape.hosts = topology::HostMap::of_labels(labels);
    return choose(shape, {.multicast = true, .streams = streams}).algorithm->name;
  };
  const model::Machine& machine = model::default_machine();
  const auto from = model::constant_of(machine, model::Constant::streamed_block).count();
  ASSERT_LE(4 * from, model::constant_of(machine, model::Constant::link_queue).count());
  EXPECT_EQ(name(3, from, true), "ring");
  EXPECT_EQ(name(4, from, true), "ring");
  EXPECT_EQ(name(4, from - 1, true), "direct");
  EXPECT_EQ(name(4, from, false), "direct");
}

// Each of the two ranks sends as many bytes as in a ring, in one step.
TEST(Choose, TwoHostsExchangeWholeVectorsUpToTheMachinesLength) {
  const auto name = [](const std::vector<int>& hosts, std::int64_t bytes) {
    Shape shape{.collective = Collective::allreduce,
                .ranks = static_cast<int>(hosts.size()),
                .count = bytes / 4};
    shape.hosts = topology::HostMap::of_labels(hosts);
    const Circumstances now{.element_bytes = 4, .multicast = true, .leaders_multicast = true};
    return choose(shape, now).algorithm->name;
  };
  const std::int64_t most =
      model::constant_of(model::default_machine(), model::Constant::exchanged_whole).count();
  EXPECT_EQ(name({0, 1}, 8), "pairwise");
  EXPECT_EQ(name({0, 1}, most), "pairwise");
  EXPECT_NE(name({0, 1}, most + 4), "pairwise");
  EXPECT_NE(name({0, 1, 2}, most), "pairwise");
  EXPECT_NE(name({0, 0, 1, 1}, most), "pairwise");
}

TEST(Choose, ReleasesByMulticastWhereThereIsOneAndDownATreeElsewhere) {
  const auto name = [](Collective collective, const Circumstances& now) {
    const Shape shape{.collective = collective, .ranks = 30};
    return choose(shape, now).algorithm->name;
  };
  const Circumstances with{.oversubscribed = true, .multicast = true};
  const Circumstances without{.oversubscribed = true, .multicast = false};
  for (const Collective collective :
       {Collective::barrier, Collective::allreduce, Collective::allgather}) {
    EXPECT_EQ(name(collective, with), "gather-release");
    EXPECT_NE(name(collective, without), "gather-release");
  }
  EXPECT_EQ(name(Collective::barrier, without), "gather-broadcast");
  EXPECT_EQ(name(Collective::allreduce, without), "reduce-broadcast");
  EXPECT_EQ(name(Collective::allgather, without), "gather-broadcast");
}

// Without its first choice, a collective takes the choice of another circumstance. The trees for
// networks without multicast come last.
TEST(Choose, TakesNoTreeForWantOfAMulticastWhereThereIsOne) {
  const auto overrides = parse_overrides("barrier: ^dissemination");
  ASSERT_TRUE(overrides.ok());
  const Shape shape{.collective = Collective::barrier, .ranks = 30};
  EXPECT_EQ(choose(shape, {.multicast = true}, *overrides).algorithm->name, "gather-release");
}

// The last rule of each collective holds always: nothing else is to depend on the order of the
// table of algorithms.
TEST(Rules, EveryCollectiveHasOneThatAlwaysHolds) {
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    const Rule* last = nullptr;
    for (const Rule& rule : rules()) {
      if (rule.collective == collective) last = &rule;
    }
    ASSERT_NE(last, nullptr) << schedule::collective_name(collective);
    for (const std::int64_t bytes : {0, 1, 1 << 20}) {
      for (const int flags : {0, 1, 2, 3}) {
        const Circumstances now{.oversubscribed = (flags & 1) != 0, .multicast = (flags & 2) != 0};
        const Shape shape{.collective = collective, .ranks = 30, .count = bytes};
        EXPECT_TRUE(last->holds({shape, now, bytes})) << last->algorithm;
      }
    }
    EXPECT_NE(algorithm::find(collective, last->algorithm), nullptr);
    EXPECT_FALSE(last->reason.empty());
  }
}

TEST(Rules, TheReasonIsThatOfTheRuleThatHolds) {
  const Shape shape{Collective::barrier, 4, 0, 0, false};
  EXPECT_NE(choose(shape, {}).reason, choose(shape, {.oversubscribed = true}).reason);
  EXPECT_EQ(choose(shape, {}).reason, "every rank has a core, and this takes the fewest steps");
}

TEST(ChooseEngine, EachWithItsReason) {
  const Shape shape{.collective = Collective::allreduce, .ranks = 4, .count = 1};
  const Circumstances oversubscribed{.oversubscribed = true,
                                     .op = arith::Operator::sum,
                                     .type = arith::Type::int64,
                                     .shared_receive_buffers = true};
  const auto expect = [&](const Circumstances& now, EngineKind engine, std::string_view reason) {
    const Choice choice = choose(shape, now);
    EXPECT_EQ(choice.engine, engine) << reason;
    EXPECT_EQ(choice.engine_reason, reason);
    EXPECT_EQ(choice.why_not_nic, "");
  };
  expect(oversubscribed, EngineKind::helping,
         "ranks outnumber cores, so that one without a core would delay all");
  Circumstances now = oversubscribed;
  now.oversubscribed = false;
  expect(now, EngineKind::inline_, "every rank has a core");
  now.engine = base::EngineChoice::helping;
  expect(now, EngineKind::helping, "UNISONO_ENGINE asks for it");
  now = oversubscribed;
  now.engine = base::EngineChoice::inline_;
  expect(now, EngineKind::inline_, "UNISONO_ENGINE asks for it");
  now = oversubscribed;
  now.op = std::nullopt;
  expect(now, EngineKind::inline_, "a user's function has an address in its own process only");
  now = oversubscribed;
  now.shared_receive_buffers = false;
  expect(now, EngineKind::inline_, "ranks cannot write to each other's receive buffers");
}

TEST(ChooseEngine, TheNicPathOrTheReasonAgainstIt) {
  Shape shape{.collective = Collective::allreduce, .ranks = 4, .count = 1};
  shape.hosts = topology::HostMap::of_labels(std::vector<int>{0, 1, 2, 3});
  const Circumstances now{.element_bytes = 8,
                          .op = arith::Operator::sum,
                          .type = arith::Type::int64,
                          .nic = nic::Preferences{}};
  const Choice by_nic = choose(shape, now);
  EXPECT_EQ(by_nic.engine, EngineKind::nic);
  EXPECT_EQ(by_nic.why_not_nic, "");
  shape.count = 1 << 20;
  const Choice longer = choose(shape, now);
  EXPECT_EQ(longer.engine, EngineKind::inline_);
  EXPECT_NE(longer.why_not_nic.find("faster without it"), std::string::npos);
  const Choice overridden =
      choose({.collective = Collective::allreduce, .ranks = 4, .count = 1, .hosts = shape.hosts},
             now, *parse_overrides("allreduce:ring"));
  EXPECT_EQ(overridden.engine, EngineKind::inline_);
  EXPECT_EQ(overridden.why_not_nic, "UNISONO_ALGORITHM asks for ring");
}

TEST(Choose, AnOperatorThatDoesNotCommuteGetsAnAlgorithmThatKeepsOrder) {
  for (const std::int64_t count : {1, 1'000'000}) {
    const Shape shape{Collective::allreduce, 6, 0, count, true};
    EXPECT_TRUE(choose(shape, {.element_bytes = 8}).algorithm->keeps_order) << count;
  }
}

}  // namespace
}  // namespace unisono::select::select_test
