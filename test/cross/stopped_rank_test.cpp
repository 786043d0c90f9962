// SPDX-License-Identifier: BSD-3-Clause
// Helping (host_operation), for every algorithm: a rank that has given its part and never runs
// again holds nobody up. Each rank in turn makes its call and is then left alone; all others have
// to complete, and then its own output has to be there, too. Vectors of both size classes, equal
// and unequal blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "algorithm/algorithm.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"
#include "harness/unequal_blocks.hpp"

namespace unisono::test::stopped_rank_test {
namespace {

using algorithm::Algorithm;
using comm::Pending;
using schedule::Collective;
using schedule::Shape;

class StoppedRank : public testing::Test {
 protected:
  void check(const Algorithm& row, const Shape& shape, const Manner& manner) {
    for (int stopped = 0; stopped < shape.ranks; ++stopped) {
      for (const bool first : {true, false}) {
        Trial trial(shape, material(arith::Type::int64, arith::Operator::sum), manner);
        SCOPED_TRACE(std::string(row.name) + ", " + trial.describe() + ", rank " +
                     std::to_string(stopped) + " stops, " + (first ? "first" : "last"));
        ASSERT_NO_FATAL_FAILURE(leave_out(trial, shape.ranks, stopped, first));
        ++cells_;
      }
    }
  }

  void leave_out(Trial& trial, int ranks, int stopped, bool first) {
    std::vector<Pending> pending(static_cast<std::size_t>(ranks));
    const auto of = [&pending](int rank) -> Pending& {
      return pending[static_cast<std::size_t>(rank)];
    };
    if (first) trial.start(*world_, stopped, of(stopped));
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank != stopped) trial.start(*world_, rank, of(rank));
    }
    if (!first) trial.start(*world_, stopped, of(stopped));
    // Else it would have given a part of its part.
    ASSERT_EQ(of(stopped).operation.plan->segments, 1);
    const auto others_running = [&] {
      int running = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        running += rank != stopped && of(rank).state == Pending::State::running ? 1 : 0;
      }
      return running;
    };
    for (int turn = 0; turn < kTurns * ranks && others_running() > 0; ++turn) {
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != stopped) world_->at(rank).progress();
      }
    }
    ASSERT_EQ(others_running(), 0);
    world_->at(stopped).progress();
    ASSERT_EQ(of(stopped).state, Pending::State::complete);
    trial.compare();
    for (int rank = 0; rank < ranks; ++rank) {
      helped_ += rank == stopped ? 0 : of(rank).operation.host.helped_steps();
    }
  }

  static constexpr int kTurns = 20;
  std::unique_ptr<World> world_;
  std::int64_t cells_ = 0, helped_ = 0;
};

TEST_F(StoppedRank, HoldsNobodyUpOnceItHasGivenItsPart) {
  for (const int ranks : {2, 5, 8}) {
    world_ = make_world({"helping", "shm"}, ranks);
    for (const Algorithm& row : algorithm::table()) {
      Shape shape{.collective = row.collective, .ranks = ranks};
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      world_->override_with(row, parameters);
      if (schedule::is_rooted(row.collective)) shape.root = ranks / 2;
      for (const std::int64_t count : {1, 200}) {
        if (row.collective == Collective::barrier && count > 1) continue;
        shape.count = row.collective == Collective::barrier ? 0 : count;
        ASSERT_NO_FATAL_FAILURE(check(row, shape, {.in_place = count > 1}));
      }
      if (!schedule::has_blocks(row.collective) || !row.unequal_blocks) continue;
      shape.count = 0;
      shape.blocks = unequal_blocks(row.collective, ranks, 5, true, 20);
      for (const bool gaps : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(check(row, shape, {.in_place = gaps, .gaps = gaps}));
      }
    }
  }
  std::printf("%lld cells, %lld steps done for others\n", static_cast<long long>(cells_),
              static_cast<long long>(helped_));
  EXPECT_GT(cells_, 1000);
  EXPECT_GT(helped_, cells_);
}

}  // namespace
}  // namespace unisono::test::stopped_rank_test
