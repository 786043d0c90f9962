// SPDX-License-Identifier: BSD-3-Clause
// Cross test with blocks of different lengths: every algorithm that takes them x ranks x roots x
// engines x transports, against the naive reference, bit for bit. Counts follow from seeds, many of
// them are 0, and some need many segments; of a many_to_many, random ranks send and random ranks
// receive. Apart and in place, with and without gaps, with all counts known and with local ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"
#include "harness/unequal_blocks.hpp"

namespace unisono::test::unequal_blocks_test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using schedule::Collective;
using schedule::Shape;

// Elements of 8 bytes: two of the longest blocks are then longer than a receive buffer for long
// messages.
constexpr std::int64_t kSeveralSegments = 3'001;

bool takes_unequal_blocks(const Algorithm& row) {
  return schedule::has_blocks(row.collective) && row.unequal_blocks;
}

class UnequalBlocks : public testing::TestWithParam<Combination> {
 protected:
  void check(const Algorithm& row, const Shape& shape, const Material& of, const Manner& manner) {
    SCOPED_TRACE(row.name);
    ASSERT_NO_FATAL_FAILURE(Trial(shape, of, manner).run(*world_));
    ++cells_;
    for (int r = 0; r < shape.ranks; ++r) {
      if (!schedule::receives(shape, r)) ++no_receivers_;
      if (schedule::input_count(shape, r) == 0) ++no_senders_;
    }
  }

  void check_shape(const Algorithm& row, Shape shape, std::uint64_t seed) {
    for (const bool in_place : {false, true}) {
      shape.blocks = unequal_blocks(row.collective, shape.ranks, seed, in_place);
      for (const bool gaps : {false, true}) {
        const Manner manner{.in_place = in_place, .gaps = gaps};
        check(row, shape, material(Type::float64, Operator::sum), manner);
        if (row.local_counts) {
          check(row, shape, material(Type::int32, Operator::max),
                {.in_place = in_place, .gaps = gaps, .local_counts = true});
        }
      }
      if (schedule::is_reduction(row.collective) && row.keeps_order) {
        Shape ordered = shape;
        ordered.ordered = true;
        check(row, ordered, affine_maps(), {.in_place = in_place});
      }
    }
  }

  void check_row(const Algorithm& row, int ranks) {
    const Shape equal{.collective = row.collective, .ranks = ranks};
    const auto parameters = algorithm::default_parameters(row, equal);
    if (!algorithm::why_illegal(row, equal, parameters).empty()) {
      ++not_legal_;
      return;
    }
    world_->override_with(row, parameters);
    const int seeds = full_sweep ? 12 : 4;
    for (int seed = 1; seed <= seeds; ++seed) {
      Shape shape = equal;
      if (schedule::is_rooted(row.collective)) shape.root = seed % ranks;
      check_shape(row, shape, static_cast<std::uint64_t>(seed * 100 + ranks));
      if (HasFatalFailure()) return;
    }
    Shape shape = equal;
    shape.root = schedule::is_rooted(row.collective) ? ranks - 1 : 0;
    for (const bool in_place : {false, true}) {
      shape.blocks = unequal_blocks(row.collective, ranks, 7, true, kSeveralSegments);
      check(row, shape, material(Type::int64, Operator::sum), {.in_place = in_place});
    }
  }

  // Calls check_of(row, shape) for each of them and some numbers of ranks.
  template <class Check>
  void check_reduce_scatters(const Check& check_of) {
    for (const int ranks : {2, 3, 5}) {
      world_ = make_world(GetParam(), ranks);
      for (const Algorithm& row : algorithm::table()) {
        if (row.collective != Collective::reduce_scatter || !row.unequal_blocks) continue;
        const Shape shape{.collective = row.collective, .ranks = ranks};
        const auto parameters = algorithm::default_parameters(row, shape);
        if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
        world_->override_with(row, parameters);
        check_of(row, shape);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(cells_, 0);
  }

  std::unique_ptr<World> world_;
  std::int64_t cells_ = 0, not_legal_ = 0;
  std::int64_t no_senders_ = 0, no_receivers_ = 0;
};

TEST_P(UnequalBlocks, EveryAlgorithmThatTakesThemEqualsTheReference) {
  std::set<Collective> tried;
  for (const int ranks : swept_ranks()) {
    world_ = make_world(GetParam(), ranks);
    for (const Algorithm& row : algorithm::table()) {
      if (!takes_unequal_blocks(row)) continue;
      check_row(row, ranks);
      if (HasFatalFailure()) return;
      tried.insert(row.collective);
    }
  }
  std::printf("%s over %s: %lld cells compared, %lld rows that refuse the ranks or parameters\n",
              GetParam().engine, GetParam().network, static_cast<long long>(cells_),
              static_cast<long long>(not_legal_));
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    EXPECT_EQ(tried.contains(collective), schedule::has_blocks(collective))
        << schedule::collective_name(collective);
  }
  EXPECT_GT(cells_, 500);
  EXPECT_GT(no_senders_, 0);
  EXPECT_GT(no_receivers_, 0);
}

// In place, the outputs of the other ranks then lie over inputs of the next block, which begins in
// the middle of a segment.
TEST_P(UnequalBlocks, AShortFirstBlockBeforeLongOnesInPlace) {
  check_reduce_scatters([&](const Algorithm& row, Shape shape) {
    for (const std::int64_t first : {0, 1, 3, 37, 500, 1'001}) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(shape.ranks), kSeveralSegments);
      counts[0] = first;
      shape.blocks = *schedule::Blocks::of_ranks(counts, {});
      for (const bool in_place : {false, true}) {
        check(row, shape, material(Type::int64, Operator::sum), {.in_place = in_place});
        check(row, shape, material(Type::uint8, Operator::sum), {.in_place = in_place});
        if (!row.keeps_order) continue;
        Shape ordered = shape;
        ordered.ordered = true;
        check(row, ordered, affine_maps(), {.in_place = in_place});
      }
    }
  });
}

// In the later segments only the last block has elements. In place, its output still lies some
// elements before its input.
TEST_P(UnequalBlocks, ShortBlocksBeforeALongOneInPlace) {
  check_reduce_scatters([&](const Algorithm& row, Shape shape) {
    for (const std::int64_t each : {1, 40}) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(shape.ranks), each);
      counts.back() = 5 * kSeveralSegments;
      shape.blocks = *schedule::Blocks::of_ranks(counts, {});
      check(row, shape, material(Type::int64, Operator::sum), {.in_place = true});
      check(row, shape, material(Type::float32, Operator::sum), {.in_place = true});
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, UnequalBlocks, testing::ValuesIn(kCombinations), combination_name);

}  // namespace
}  // namespace unisono::test::unequal_blocks_test
