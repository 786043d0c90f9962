// SPDX-License-Identifier: BSD-3-Clause
// Segments that begin before their turn, as a rank does before it sleeps: results are those of the
// reference, for every algorithm, and a rank that comes later finds the messages of all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"
#include "harness/scale.hpp"
#include "harness/unequal_blocks.hpp"

namespace unisono::test::later_segments_test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using comm::Pending;
using schedule::Collective;
using schedule::Shape;

class LaterSegments : public testing::TestWithParam<Combination> {
 protected:
  static bool is_running(const Pending& pending) {
    return pending.state == Pending::State::running;
  }
  // The rank is about to sleep.
  static void before_sleep(Pending& pending) {
    engine::Operation& operation = pending.operation;
    operation.engine->prepare_sleep(operation, 0);
    most_later_ = std::max(most_later_, operation.host.later_segments());
  }

  // Ranks look or prepare to sleep, in a random order.
  void run(Trial& trial, int ranks) {
    std::vector<Pending> pending(static_cast<std::size_t>(ranks));
    const auto of = [&pending](int rank) -> Pending& {
      return pending[static_cast<std::size_t>(rank)];
    };
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_NO_FATAL_FAILURE(trial.start(*world_, rank, of(rank)));
      if (is_running(of(rank))) before_sleep(of(rank));
    }
    for (int turn = 0; turn < kTurns && std::ranges::any_of(pending, is_running); ++turn) {
      const int rank = world_->random_rank();
      if (!is_running(of(rank))) continue;
      if (world_->prng().below(2) == 0) {
        before_sleep(of(rank));
      } else {
        world_->at(rank).progress();
      }
    }
    ASSERT_FALSE(std::ranges::any_of(pending, is_running));
    trial.compare();
  }

  // A vector of many segments.
  static Shape long_shape(Collective collective, int ranks) {
    const std::int64_t all = harness::kSanitized ? 80'001 : 160'001;
    const std::int64_t count = schedule::has_blocks(collective) ? all / ranks : all;
    return {collective, ranks, ranks / 2 * (schedule::is_rooted(collective) ? 1 : 0), count, false};
  }

  void run_in_place(const Algorithm& row, const Shape& shape) {
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::why_illegal(row, shape, parameters).empty()) return;
    world_->override_with(row, parameters);
    Trial trial(shape, material(Type::int64, Operator::sum), {.in_place = true});
    SCOPED_TRACE(std::string(row.name) + ", " + trial.describe());
    run(trial, shape.ranks);
  }

  static constexpr int kTurns = 100'000;
  std::unique_ptr<World> world_;
  static inline int most_later_ = 0;
};

TEST_P(LaterSegments, OfEveryAlgorithmGiveTheResultsOfTheReference) {
  std::int64_t cells = 0;
  for (const int ranks : {2, 3, 4}) {
    world_ = make_world(GetParam(), ranks);
    for (const Algorithm& row : algorithm::table()) {
      if (row.collective == Collective::barrier) continue;
      const Shape shape = long_shape(row.collective, ranks);
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      world_->override_with(row, parameters);
      for (const bool in_place : {false, true}) {
        Trial trial(shape, material(Type::float64, Operator::sum), {.in_place = in_place});
        SCOPED_TRACE(std::string(row.name) + ", " + trial.describe());
        ASSERT_NO_FATAL_FAILURE(run(trial, ranks));
        ++cells;
      }
    }
  }
  std::printf("%lld cells, up to %d segments ahead\n", static_cast<long long>(cells), most_later_);
  EXPECT_GT(cells, 100);
  EXPECT_GT(most_later_, 1);
}

// In place, the output of a segment lies over the input of those before it if the first block is
// short. A rank with such segments begins none of them early.
TEST_P(LaterSegments, LeaveTheInputsOfThoseBeforeThem) {
  for (const int ranks : {2, 3, 4}) {
    world_ = make_world(GetParam(), ranks);
    for (const Algorithm& row : algorithm::table()) {
      if (row.collective != Collective::reduce_scatter || !row.unequal_blocks) continue;
      for (const std::int64_t first : {1, 16'385, 20'001}) {
        std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 60'001);
        counts[0] = first;
        ASSERT_NO_FATAL_FAILURE(
            run_in_place(row, {.collective = row.collective,
                               .ranks = ranks,
                               .blocks = *schedule::Blocks::of_ranks(counts, {})}));
      }
    }
  }
}

TEST_P(LaterSegments, OfUnequalBlocksInPlace) {
  for (const int ranks : {3, 4}) {
    world_ = make_world(GetParam(), ranks);
    for (const Algorithm& row : algorithm::table()) {
      if (!schedule::has_blocks(row.collective) || !row.unequal_blocks) continue;
      for (const std::uint64_t seed : {1, 2, 3}) {
        ASSERT_NO_FATAL_FAILURE(run_in_place(
            row, {.collective = row.collective,
                  .ranks = ranks,
                  .root = schedule::is_rooted(row.collective) ? ranks / 2 : 0,
                  .blocks = unequal_blocks(row.collective, ranks, seed, true, 15'001)}));
      }
    }
  }
}

// Without them, a rank waits once for each segment, and sleeps where the other has no core.
TEST_P(LaterSegments, AreThereForARankThatComesLater) {
  world_ = make_world(GetParam(), 2);
  // Each rank sends once for each segment, so the late one needs nothing else of the early one.
  const Algorithm& row = *algorithm::find(Collective::allreduce, "pairwise");
  const Shape shape = long_shape(Collective::allreduce, 2);
  world_->override_with(row, algorithm::default_parameters(row, shape));
  Trial trial(shape, material(Type::float64, Operator::sum), {.in_place = true});
  ASSERT_GT(trial.segments(*world_), 4);
  Pending early, late;
  ASSERT_NO_FATAL_FAILURE(trial.start(*world_, 0, early));
  ASSERT_TRUE(is_running(early));
  EXPECT_EQ(early.operation.host.later_segments(), 0) << "it does not sleep yet";
  before_sleep(early);
  EXPECT_GE(early.operation.host.later_segments(), 3);
  const std::uint64_t first = early.operation.host.sequence();
  ASSERT_NO_FATAL_FAILURE(trial.start(*world_, 1, late));
  EXPECT_GE(late.operation.host.sequence(), first + 3) << "the early rank has not run meanwhile";
  for (int turn = 0; turn < kTurns && (is_running(early) || is_running(late)); ++turn) {
    world_->at(turn % 2).progress();
  }
  ASSERT_FALSE(is_running(early) || is_running(late));
  trial.compare();
}

// Two ranks run by turns and sleep in between. Without later segments a turn is enough for one
// segment or two.
TEST_P(LaterSegments, MakeATurnEnoughForSeveral) {
  world_ = make_world(GetParam(), 2);
  Trial trial({Collective::allreduce, 2, 0, 800'001, false}, material(Type::float64, Operator::sum),
              {});
  const std::int64_t segments = trial.segments(*world_);
  ASSERT_GT(segments, 32);
  std::vector<Pending> pending(2);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_NO_FATAL_FAILURE(trial.start(*world_, rank, pending[static_cast<std::size_t>(rank)]));
  }
  int turns = 0;
  for (; turns < kTurns && std::ranges::any_of(pending, is_running); ++turns) {
    Pending& own = pending[static_cast<std::size_t>(turns % 2)];
    if (is_running(own)) before_sleep(own);
    world_->at(turns % 2).progress();
  }
  EXPECT_LT(3 * turns / 2, segments);
  ASSERT_FALSE(std::ranges::any_of(pending, is_running));
  trial.compare();
}

// A user's operator is called once for each step, so its segments go one by one.
TEST_P(LaterSegments, DoNotBeginWithAUsersOperator) {
  world_ = make_world(GetParam(), 2);
  Shape shape = long_shape(Collective::allreduce, 2);
  shape.ordered = true;
  Trial trial(shape, affine_maps(), {});
  ASSERT_GT(trial.segments(*world_), 1);
  most_later_ = 0;
  ASSERT_NO_FATAL_FAILURE(run(trial, 2));
  EXPECT_EQ(most_later_, 0);
}

INSTANTIATE_TEST_SUITE_P(All, LaterSegments,
                         testing::Values(Combination{"inline", "shm"},
                                         Combination{"helping", "shm"}),
                         combination_name);

}  // namespace
}  // namespace unisono::test::later_segments_test
