// SPDX-License-Identifier: BSD-3-Clause
#include "plan/segments.hpp"

#include <gtest/gtest.h>

namespace unisono::plan::segments_test {
namespace {

using schedule::Blocks;
using schedule::Collective;
using schedule::Shape;
using Side = Buffer::Side;

Shape of_blocks(Collective collective, const std::vector<std::int64_t>& counts,
                std::vector<bool> receivers = {}) {
  return {.collective = collective,
          .ranks = static_cast<int>(counts.size()),
          .blocks = *Blocks::of_ranks(counts, std::move(receivers))};
}

std::vector<std::int64_t> counts(const Shape& shape) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < shape.ranks; ++r) counts.push_back(shape.blocks.of(r).count);
  return counts;
}

TEST(Segments, OfAVectorEndWithIt) {
  const Shape whole{.collective = Collective::allreduce, .ranks = 3, .count = 25};
  EXPECT_EQ(longest_vector(whole), 25);
  EXPECT_EQ(segment_of(whole, 0, 10).count, 10);
  EXPECT_EQ(segment_of(whole, 20, 10).count, 5);
  EXPECT_EQ(segment_of(whole, 30, 10).count, 0);
}

TEST(Segments, CutEachBlock) {
  const Shape whole =
      of_blocks(Collective::many_to_many, {0, 25, 10, 7}, {true, false, true, true});
  EXPECT_EQ(longest_vector(whole), 25);
  EXPECT_EQ(counts(segment_of(whole, 0, 10)), (std::vector<std::int64_t>{0, 10, 10, 7}));
  const Shape last = segment_of(whole, 20, 10);
  EXPECT_EQ(counts(last), (std::vector<std::int64_t>{0, 5, 0, 0}));
  EXPECT_FALSE(last.blocks.receives(1));
  EXPECT_TRUE(last.blocks.receives(3));
}

TEST(Segments, CutEachPair) {
  const Shape whole{.collective = Collective::alltoall,
                    .ranks = 2,
                    .blocks = *Blocks::of_pairs(2, {1, 12, 0, 5})};
  EXPECT_EQ(longest_vector(whole), 12);
  const Shape second = segment_of(whole, 4, 4);
  EXPECT_EQ(second.blocks.sent(0, 0).count, 0);
  EXPECT_EQ(second.blocks.sent(0, 1).count, 4);
  EXPECT_EQ(second.blocks.sent(1, 1).count, 1);
}

TEST(Segments, OverlapInPlaceWhereShorterBlocksComeFirst) {
  const auto overlap = [](const std::vector<std::int64_t>& counts, int rank) {
    Shape shape{.collective = Collective::reduce_scatter, .ranks = 3};
    shape.blocks = *Blocks::of_ranks(counts, {});
    return overlaps_in_place(shape, rank);
  };
  EXPECT_FALSE(overlap({5, 5, 5}, 2));
  EXPECT_FALSE(overlap({5, 1, 5}, 2));
  EXPECT_FALSE(overlap({4, 5, 5}, 0));
  EXPECT_TRUE(overlap({4, 5, 5}, 1));
  EXPECT_TRUE(overlap({4, 5, 5}, 2));
  EXPECT_FALSE(overlap({0, 5, 5}, 1)) << "the output lies over its own block only";
  EXPECT_TRUE(overlap({0, 4, 5}, 2));
  EXPECT_FALSE(overlap({4, 0, 5}, 1));
  EXPECT_FALSE(overlaps_in_place({.collective = Collective::allreduce, .ranks = 3, .count = 9}, 1));
  EXPECT_FALSE(
      overlaps_in_place({.collective = Collective::reduce_scatter, .ranks = 3, .count = 9}, 2));
}

TEST(Layout, OfBuffersWithoutBlocksIsContiguous) {
  const Shape whole = of_blocks(Collective::allgather, {5, 6});
  EXPECT_TRUE(layout_of(whole, segment_of(whole, 2, 2), {0, Side::input, nullptr}).contiguous());
  EXPECT_TRUE(layout_of(whole, whole, {0, Side::output, nullptr}).contiguous());
}

TEST(Layout, OfASegmentHasThePlacesOfTheBlocks) {
  const Shape whole = of_blocks(Collective::allgather, {5, 0, 3, 6});
  const auto layout = layout_of(whole, segment_of(whole, 4, 2), {0, Side::output, nullptr});
  ASSERT_EQ(layout.pieces.size(), 2U);  // blocks 0 and 3 have elements left
  EXPECT_EQ(layout.pieces[0].offset, 0);
  EXPECT_EQ(layout.pieces[0].count, 1);
  EXPECT_EQ(layout.pieces[0].place, 0);
  EXPECT_EQ(layout.pieces[1].offset, 1);
  EXPECT_EQ(layout.pieces[1].count, 2);
  EXPECT_EQ(layout.pieces[1].place, 8);
}

TEST(Layout, TakesDisplacementsInAnyOrder) {
  const Shape whole{
      .collective = Collective::alltoall, .ranks = 2, .blocks = *Blocks::of_pairs(2, {2, 3, 4, 1})};
  const std::vector<std::int64_t> places{10, 0};
  const auto sent = layout_of(whole, whole, {1, Side::input, &places});
  ASSERT_EQ(sent.pieces.size(), 2U);
  EXPECT_EQ(sent.pieces[0].count, 4);
  EXPECT_EQ(sent.pieces[0].place, 10);
  EXPECT_EQ(sent.pieces[1].count, 1);
  EXPECT_EQ(sent.pieces[1].place, 0);
  const auto received = layout_of(whole, whole, {1, Side::output, nullptr});
  EXPECT_TRUE(received.contiguous());
}

}  // namespace
}  // namespace unisono::plan::segments_test
