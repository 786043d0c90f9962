// SPDX-License-Identifier: BSD-3-Clause
// Blocks of unequal lengths, and their use in shapes: offsets, counts, and positions in place.
#include "schedule/blocks.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "schedule/shape.hpp"

namespace unisono::schedule::blocks_test {
namespace {

Shape shape_of(Collective collective, int root, Blocks blocks) {
  Shape shape{.collective = collective, .ranks = 3, .root = root};
  shape.blocks = std::move(blocks);
  return shape;
}

// Elements that ranks 0, 1 and 2 send to ranks 0, 1 and 2.
const std::vector<std::int64_t> kPairs = {1, 2, 0, 0, 3, 4, 5, 0, 6};

TEST(Blocks, OneARankLieOneAfterAnother) {
  const Blocks blocks = *Blocks::of_ranks({3, 0, 2});
  EXPECT_EQ(blocks.ranks(), 3);
  EXPECT_EQ(blocks.of(0), (Block{0, 3}));
  EXPECT_EQ(blocks.of(1), (Block{3, 0}));
  EXPECT_EQ(blocks.of(2), (Block{3, 2}));
  EXPECT_EQ(blocks.total(), 5);
  EXPECT_FALSE(blocks.are_pairs());
  EXPECT_TRUE(blocks.all_receive());
}

TEST(Blocks, OneAPairHaveAPlaceAtBothEnds) {
  const Blocks blocks = *Blocks::of_pairs(3, kPairs);
  EXPECT_TRUE(blocks.are_pairs());
  EXPECT_EQ(blocks.sent(1, 2), (Block{3, 4}));
  EXPECT_EQ(blocks.received(1, 2), (Block{0, 4}));
  EXPECT_EQ(blocks.sent(2, 2), (Block{5, 6}));
  EXPECT_EQ(blocks.received(2, 2), (Block{4, 6}));
  EXPECT_EQ(blocks.sent_total(0), 3);
  EXPECT_EQ(blocks.received_total(0), 6);
}

TEST(Blocks, WhatARankDoesNotKnowCountsAsNothing) {
  const Blocks all = *Blocks::of_pairs(3, kPairs);
  const Blocks own = *Blocks::of_pairs_of(1, {0, 3, 4}, {2, 3, 0});
  for (int peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(own.sent(1, peer), all.sent(1, peer));
    EXPECT_EQ(own.received(peer, 1), all.received(peer, 1));
  }
  EXPECT_EQ(own.received(1, 2).count, 4);
  EXPECT_EQ(own.sent(0, 1).count, 2);
  EXPECT_EQ(own.sent(0, 0).count, 0);
  EXPECT_EQ(own, *Blocks::of_pairs(3, {0, 2, 0, 0, 3, 4, 0, 0, 0}));
  EXPECT_EQ(own, *Blocks::of_pairs_of(1, {0, 3, 4}, {2, 3, 0}));
  EXPECT_FALSE(own == *Blocks::of_pairs_of(1, {0, 3, 4}, {2, 3, 1}));
  EXPECT_FALSE(own == *Blocks::of_pairs_of(2, {0, 3, 4}, {2, 3, 4}));
}

// In every place and sum, also of the other ranks.
TEST(Blocks, WhatARankKnowsAreTheBlocksOfASmallerExchange) {
  const std::vector<std::int64_t> sent = {2, 3, 0, 4}, received = {5, 3, 1, 0};
  for (int rank = 0; rank < 4; ++rank) {
    auto from_rank = sent, to_rank = received;
    from_rank[static_cast<std::size_t>(rank)] = to_rank[static_cast<std::size_t>(rank)] = 7;
    std::vector<std::int64_t> pairs(16, 0);
    for (int peer = 0; peer < 4; ++peer) {
      pairs[static_cast<std::size_t>(rank * 4 + peer)] = from_rank[static_cast<std::size_t>(peer)];
      pairs[static_cast<std::size_t>(peer * 4 + rank)] = to_rank[static_cast<std::size_t>(peer)];
    }
    const Blocks own = *Blocks::of_pairs_of(rank, from_rank, to_rank);
    const Blocks smaller = *Blocks::of_pairs(4, pairs);
    for (int from = 0; from < 4; ++from) {
      EXPECT_EQ(own.sent_total(from), smaller.sent_total(from));
      EXPECT_EQ(own.received_total(from), smaller.received_total(from));
      for (int to = 0; to < 4; ++to) {
        EXPECT_EQ(own.sent(from, to), smaller.sent(from, to)) << from << " to " << to;
        EXPECT_EQ(own.received(from, to), smaller.received(from, to)) << from << " to " << to;
      }
    }
    EXPECT_EQ(own, smaller);
  }
}

TEST(Blocks, AreEqualByValue) {
  EXPECT_EQ(Blocks(), Blocks());
  EXPECT_EQ(*Blocks::of_ranks({1, 2}), *Blocks::of_ranks({1, 2}));
  EXPECT_FALSE(*Blocks::of_ranks({1, 2}) == *Blocks::of_ranks({2, 1}));
  EXPECT_FALSE(*Blocks::of_ranks({1, 2}) == *Blocks::of_ranks({1, 2, 0}));
  EXPECT_FALSE(*Blocks::of_ranks({1, 2}) == Blocks());
  EXPECT_FALSE(*Blocks::of_ranks({4}) == *Blocks::of_pairs(1, {4}));
  EXPECT_EQ(*Blocks::of_ranks({1, 2}, {true, true}), *Blocks::of_ranks({1, 2}));
  EXPECT_FALSE(*Blocks::of_ranks({1, 2}, {true, false}) == *Blocks::of_ranks({1, 2}));
  EXPECT_FALSE(*Blocks::of_pairs(3, kPairs) == *Blocks::of_pairs(3, {1, 2, 0, 0, 3, 4, 5, 1, 6}));
}

TEST(Blocks, RefuseWhatCannotBeCounted) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Blocks::of_ranks({1, -1}).error().message,
            "block 1 has -1 elements: a block has 0 or more");
  EXPECT_EQ(Blocks::of_ranks({kMost, 0, 1}).error().message,
            "the blocks up to block 2 have more elements than 64 bits can count");
  EXPECT_TRUE(Blocks::of_ranks({kMost, 0}).ok());
  // Each row of it could be counted, but not the column.
  EXPECT_FALSE(Blocks::of_pairs(2, {kMost, 0, 1, 0}).ok());
  EXPECT_EQ(Blocks::of_pairs(2, {0, 0, 0, -5}).error().code, base::Code::argument);
}

TEST(Shape, CountsOfUnequalBlocks) {
  const Blocks blocks = *Blocks::of_ranks({3, 0, 2});
  const auto counts = [&](Collective collective, int rank) {
    const Shape shape = shape_of(collective, is_rooted(collective) ? 2 : 0, blocks);
    return std::pair(input_count(shape, rank), output_count(shape, rank));
  };
  EXPECT_EQ(counts(Collective::allgather, 1), std::pair(std::int64_t{0}, std::int64_t{5}));
  EXPECT_EQ(counts(Collective::gather, 0), std::pair(std::int64_t{3}, std::int64_t{0}));
  EXPECT_EQ(counts(Collective::gather, 2), std::pair(std::int64_t{2}, std::int64_t{5}));
  EXPECT_EQ(counts(Collective::scatter, 0), std::pair(std::int64_t{0}, std::int64_t{3}));
  EXPECT_EQ(counts(Collective::scatter, 2), std::pair(std::int64_t{5}, std::int64_t{2}));
  EXPECT_EQ(counts(Collective::reduce_scatter, 1), std::pair(std::int64_t{5}, std::int64_t{0}));
  const Shape pairs = shape_of(Collective::alltoall, 0, *Blocks::of_pairs(3, kPairs));
  EXPECT_EQ(input_count(pairs, 1), 7);
  EXPECT_EQ(output_count(pairs, 1), 5);
  const Shape some =
      shape_of(Collective::many_to_many, 0, *Blocks::of_ranks({3, 0, 2}, {false, true, true}));
  EXPECT_EQ(output_count(some, 0), 0);
  EXPECT_EQ(output_count(some, 1), 5);
  EXPECT_EQ(neighbouring_blocks(some, 1, 2), (Block{3, 2}));
  EXPECT_EQ(whole_count(some), 5);
}

TEST(Shape, EqualBlocksNeedNoNumbers) {
  Shape shape{.collective = Collective::alltoall, .ranks = 3, .count = 4};
  EXPECT_EQ(sent_block(shape, 0, 2), (Block{8, 4}));
  EXPECT_EQ(received_block(shape, 1, 2), (Block{4, 4}));
  EXPECT_EQ(input_count(shape, 1), 12);
  shape.collective = Collective::reduce_scatter;
  EXPECT_EQ(block(shape, 2), (Block{8, 4}));
  EXPECT_EQ(output_count(shape, 2), 4);
  EXPECT_EQ(neighbouring_blocks(shape, 1, 2), (Block{4, 8}));
  EXPECT_EQ(neighbouring_blocks(shape, 3, 0), Block{});
}

TEST(Shape, RankZeroOfAnExclusiveScanGetsNothing) {
  const Shape shape{.collective = Collective::exscan, .ranks = 3, .count = 4};
  EXPECT_EQ(output_count(shape, 0), 0);
  EXPECT_EQ(output_count(shape, 1), 4);
  EXPECT_EQ(in_place(shape, 0), std::nullopt);
  EXPECT_EQ(in_place(shape, 1), InPlace{});
}

TEST(Shape, InPlaceSaysWhichBufferHoldsWhich) {
  const Blocks blocks = *Blocks::of_ranks({3, 0, 2});
  EXPECT_EQ(in_place(shape_of(Collective::allgather, 0, blocks), 2), (InPlace{3, 0}));
  EXPECT_EQ(in_place(shape_of(Collective::gather, 2, blocks), 2), (InPlace{3, 0}));
  EXPECT_EQ(in_place(shape_of(Collective::gather, 2, blocks), 1), std::nullopt);
  EXPECT_EQ(in_place(shape_of(Collective::scatter, 2, blocks), 2), (InPlace{0, 3}));
  EXPECT_EQ(in_place(shape_of(Collective::scatter, 2, blocks), 0), std::nullopt);
  EXPECT_EQ(in_place(shape_of(Collective::reduce_scatter, 0, blocks), 2), InPlace{});
  const Blocks some = *Blocks::of_ranks({3, 0, 2}, {false, true, true});
  EXPECT_EQ(in_place(shape_of(Collective::many_to_many, 0, some), 0), std::nullopt);
  EXPECT_EQ(in_place(shape_of(Collective::many_to_many, 0, some), 2), (InPlace{3, 0}));
}

TEST(Shape, AnAllToAllIsInPlaceWhereCountsAreAlikeBothWays) {
  // 0 and 1 give each other 2; 2 gives 0 more than it gets.
  const Shape shape =
      shape_of(Collective::alltoall, 0, *Blocks::of_pairs(3, {1, 2, 0, 2, 3, 4, 5, 4, 6}));
  EXPECT_EQ(in_place(shape, 0), std::nullopt);
  EXPECT_EQ(in_place(shape, 1), InPlace{});
  EXPECT_EQ(in_place(shape, 2), std::nullopt);
}

TEST(Shape, BlocksHaveToFit) {
  const Blocks blocks = *Blocks::of_ranks({3, 0, 2});
  EXPECT_EQ(blocks_fault(shape_of(Collective::gather, 0, blocks)), "");
  EXPECT_NE(blocks_fault(shape_of(Collective::scan, 0, blocks)), "");
  EXPECT_NE(blocks_fault(shape_of(Collective::alltoall, 0, blocks)), "");
  EXPECT_NE(blocks_fault(shape_of(Collective::gather, 0, *Blocks::of_pairs(3, kPairs))), "");
  EXPECT_NE(blocks_fault(shape_of(Collective::gather, 0, *Blocks::of_ranks({1, 2}))), "");
  const Blocks some = *Blocks::of_ranks({3, 0, 2}, {false, true, true});
  EXPECT_NE(blocks_fault(shape_of(Collective::allgather, 0, some)), "");
  EXPECT_EQ(blocks_fault(shape_of(Collective::many_to_many, 0, some)), "");
  Shape both = shape_of(Collective::gather, 0, blocks);
  both.count = 1;
  EXPECT_NE(blocks_fault(both), "");
}

}  // namespace
}  // namespace unisono::schedule::blocks_test
