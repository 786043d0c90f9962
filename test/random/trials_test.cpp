// SPDX-License-Identifier: BSD-3-Clause
// Random collectives at all ranks of a world, several under way at once, in one thread under a
// seeded scheduler. Ranks start late, step, and prepare to sleep in any order, so that later
// segments begin ahead while earlier ones wait. All algorithms, types, blocks and buffers in place
// are drawn, and every byte is compared. The order of threads and processes is left to chance in
// programs_test.cpp; here it follows from the seed, too. A failure prints its seed; `--seed N` runs
// that one alone, and `--seeds N` (label slow) many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "comm/operations/operation_queue.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"
#include "harness/scale.hpp"
#include "harness/seeds.hpp"
#include "random/types.hpp"

namespace unisono::test::trials_test {
namespace {

using algorithm::Algorithm;
using comm::Pending;
using schedule::Collective;
using schedule::Shape;

Seeds seeds;

// Draws the trials of a scenario.
class Drawing {
 public:
  Drawing(base::Prng& prng, int ranks) : prng_(prng), ranks_(ranks) {
    often_ = static_cast<Collective>(1 + prng.below(schedule::kCollectiveCount - 1));
    // In place, their outputs may lie over inputs of others.
    if (prng.below(4) == 0) often_ = Collective::reduce_scatter;
  }

  Trial draw() {
    Shape shape{.collective = often_, .ranks = ranks_};
    if (below(3) == 0)
      shape.collective = static_cast<Collective>(below(schedule::kCollectiveCount));
    if (schedule::is_rooted(shape.collective)) shape.root = static_cast<int>(below(ranks_));
    Material of = draw_material(shape);
    shape.ordered = of.ordered && schedule::is_reduction(shape.collective);
    Manner manner{.in_place = below(2) == 0};
    const std::int64_t most = draw_count(shape, static_cast<std::int64_t>(of.size));
    if (schedule::has_blocks(shape.collective) && below(3) != 0) {
      shape.blocks = draw_blocks(shape.collective, most, manner.in_place);
      manner.gaps = below(2) == 0;
      manner.local_counts = knows_local_counts(shape.collective);
    } else if (shape.collective != Collective::barrier) {
      shape.count = most;
    }
    return {shape, of, manner};
  }

  // Rows for the preferred collective and some for others. Those that are illegal for a call are
  // passed over.
  select::Overrides draw_rules() {
    select::Overrides overrides;
    for (const Algorithm& row : algorithm::table()) {
      if (below(row.collective == often_ ? 3 : 12) != 0) continue;
      const Shape shape{.collective = row.collective, .ranks = ranks_};
      const auto parameters = algorithm::default_parameters(row, shape);
      overrides.rules.push_back({.algorithm = &row,
                                 .given = static_cast<int>(row.parameters.size()),
                                 .parameters = parameters});
    }
    std::shuffle(overrides.rules.begin(), overrides.rules.end(), prng_);
    return overrides;
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(prng_.below(static_cast<std::uint64_t>(bound)));
  }

  Material draw_material(const Shape& shape) {
    if (below(8) == 0) return affine_maps();
    const auto all = programs::kBuiltIn;
    for (;;) {
      const auto type = static_cast<int>(below(all));
      const auto op = static_cast<int>(below(harness::kOperators));
      const bool reduces = schedule::is_reduction(shape.collective);
      if (reduces && !harness::fits(op, type)) continue;
      // Products of many ranks are no longer exact in all types.
      if (reduces && op == UNISONO_PROD && ranks_ > 4) continue;
      return material(static_cast<arith::Type>(type), static_cast<arith::Operator>(op));
    }
  }

  // Mostly of several segments.
  std::int64_t draw_count(const Shape& shape, std::int64_t size) {
    if (below(4) == 0) return below(40);
    const std::int64_t bytes = (std::int64_t{4096} << below(8)) + below(4096);
    const std::int64_t blocks = schedule::has_pairs(shape.collective) ? ranks_ : 1;
    return std::max<std::int64_t>(1, bytes / blocks / size + below(3) - 1);
  }

  schedule::Blocks draw_blocks(Collective collective, std::int64_t most, bool symmetric) {
    const auto n = static_cast<std::size_t>(ranks_);
    const std::int64_t kind = below(4);
    const auto special = static_cast<std::size_t>(below(2) == 0 ? 0 : below(ranks_));
    const auto count = [&](std::size_t r) -> std::int64_t {
      if (kind == 0) return below(3) == 0 ? 0 : below(most + 1);
      if (kind == 1) return r == special ? below(most + 1) : most;
      if (kind == 2) return r == special ? most : below(std::min<std::int64_t>(most + 1, 30));
      return most * static_cast<std::int64_t>(r + 1) / ranks_;
    };
    std::vector<std::int64_t> counts;
    if (schedule::has_pairs(collective)) {
      for (std::size_t from = 0; from < n; ++from) {
        for (std::size_t to = 0; to < n; ++to) {
          counts.push_back(symmetric && to < from ? counts[to * n + from] : count(to));
        }
      }
      return *schedule::Blocks::of_pairs(ranks_, counts);
    }
    for (std::size_t r = 0; r < n; ++r) counts.push_back(count(r));
    std::vector<bool> receivers;
    if (collective == Collective::many_to_many) {
      for (std::size_t r = 0; r < n; ++r) receivers.push_back(below(3) != 0);
    }
    return *schedule::Blocks::of_ranks(counts, std::move(receivers));
  }

  // Always, where the C API has no call with all counts.
  static bool knows_local_counts(Collective collective) {
    return collective == Collective::gather || collective == Collective::scatter ||
           collective == Collective::alltoall;
  }

  base::Prng& prng_;
  int ranks_;
  Collective often_;
};

class Scenario {
 public:
  explicit Scenario(std::uint64_t seed) : prng_(seed) {
    const int ranks = 2 + static_cast<int>(prng_.below(prng_.below(3) == 0 ? 7 : 3));
    const Combination& combination = kCombinations[prng_.below(std::size(kCombinations))];
    name_ = std::string(combination.engine) + " over " + combination.network;
    constexpr const char* kBuffers[] = {"64K", "1M", "8M", "64M"};
    constexpr const char* kChannels[] = {"1", "2", "4", "8"};
    const base::Environment sizes{{"UNISONO_BUFFERS", kBuffers[prng_.below(4)]},
                                  {"UNISONO_CHANNELS", kChannels[prng_.below(4)]}};
    for (const auto& [name, value] : sizes) name_ += ", " + name + "=" + value;
    world_ = make_world(combination, ranks, sizes);
    Drawing drawing(prng_, ranks);
    const select::Overrides rules = drawing.draw_rules();
    name_ += ", " + select::print(rules);
    for (int r = 0; r < ranks; ++r) world_->at(r).plans().override_with(rules);
    for (std::uint64_t count = 1 + prng_.below(4); count > 0; --count) {
      trials_.emplace_back(drawing.draw(), static_cast<std::size_t>(ranks));
    }
    next_.resize(static_cast<std::size_t>(ranks));
    laziness_ = 2 + prng_.below(30);
  }

  void run() {
    SCOPED_TRACE(name_);
    constexpr int kMostTurns = 2'000'000;
    for (int turn = 0; turn < kMostTurns && !all_ended(); ++turn) {
      ASSERT_NO_FATAL_FAILURE(take_turn(world_->random_rank()));
    }
    ASSERT_TRUE(all_ended()) << "no progress";
    for (Running& each : trials_) {
      for (const Pending& pending : each.pending) {
        ASSERT_EQ(pending.state, Pending::State::complete) << each.trial.describe();
      }
      ASSERT_NO_FATAL_FAILURE(each.trial.compare());
    }
  }

  std::string listing() const {
    std::string text = name_;
    for (const Running& each : trials_) text += "\n" + each.trial.describe();
    return text;
  }
  static int most_later() { return most_later_; }

 private:
  struct Running {
    Running(Trial&& drawn, std::size_t ranks) : trial(std::move(drawn)), pending(ranks) {}
    Trial trial;
    std::vector<Pending> pending;
  };

  void take_turn(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (next_[r] < trials_.size() && prng_.below(laziness_) == 0) {
      Running& next = trials_[next_[r]++];
      return next.trial.start(*world_, rank, next.pending[r]);
    }
    if (prng_.below(2) == 0) return before_sleep(r);
    if (world_->network() != nullptr && prng_.below(2) == 0) world_->network()->advance();
    world_->at(rank).progress();
  }

  // As a rank does before it sleeps, for all that it has under way.
  void before_sleep(std::size_t r) {
    for (std::size_t t = 0; t < next_[r]; ++t) {
      Pending& pending = trials_[t].pending[r];
      if (pending.state != Pending::State::running || pending.operation.engine == nullptr) continue;
      pending.operation.engine->prepare_sleep(pending.operation, 0);
      most_later_ = std::max(most_later_, pending.operation.host.later_segments());
    }
  }

  bool all_ended() const {
    for (std::size_t r = 0; r < next_.size(); ++r) {
      if (next_[r] < trials_.size()) return false;
      for (const Running& each : trials_) {
        if (each.pending[r].state == Pending::State::running) return false;
      }
    }
    return true;
  }

  base::Prng prng_;
  std::string name_;
  std::unique_ptr<World> world_;
  std::deque<Running> trials_;     // that are under way stay where they are
  std::vector<std::size_t> next_;  // by rank: the trial that it starts next
  std::uint64_t laziness_ = 2;     // a rank starts its next trial in one of so many turns
  static inline int most_later_ = 0;
};

TEST(RandomTrials, EqualTheReference) {
  const int count = seeds.count > 0 ? seeds.count : static_cast<int>(harness::scaled(1000));
  const std::uint64_t end = seeds.first + static_cast<std::uint64_t>(count);
  for (std::uint64_t seed = seeds.first; seed < end; ++seed) {
    Scenario scenario(seed);
    scenario.run();
    if (HasFailure()) {
      FAIL() << "run it again: random_trials --seed " << seed << "\n" << scenario.listing();
    }
  }
  std::printf("%d scenarios, up to %d segments ahead\n", count, Scenario::most_later());
  if (count >= 50) {
    EXPECT_GT(Scenario::most_later(), 3);
  }
}

}  // namespace
}  // namespace unisono::test::trials_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::test::trials_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}
