// SPDX-License-Identifier: BSD-3-Clause
// The data of successive operations lies in different places of the receive buffers, and never
// outside their data areas.
#include <gtest/gtest.h>

#include <set>

#include "base/prng.hpp"
#include "engine/size_queue.hpp"
#include "plan/plan.hpp"

namespace unisono::plan::rotation_test {
namespace {

using engine::data_offset;

constexpr ReceiveGeometry kGeometry{
    .ranks = 2, .slot_indexes = 16, .lines = 20, .data_bytes = 128 << 10};
constexpr std::int64_t kRound = 2 << 20;

TEST(Rotation, MovesOnWheneverAllSlotIndexesWereUsed) {
  const Rotation rotation = rotate(kGeometry, 16 << 10, kRound);
  for (std::uint64_t sequence = 0; sequence < 400; ++sequence) {
    EXPECT_EQ(data_offset(rotation, sequence),
              static_cast<std::int64_t>(sequence / 16 % 8) * (16 << 10));
  }
}

TEST(Rotation, HasNoMorePlacesThanARoundNeeds) {
  EXPECT_EQ(rotate(kGeometry, 16 << 10, 1 << 20).mask, 3U);
  EXPECT_EQ(rotate(kGeometry, 16 << 10, 1).mask, 0U);
}

TEST(Rotation, OfDataThatFillsTheBufferHasOnePlace) {
  EXPECT_EQ(rotate(kGeometry, 128 << 10, kRound).mask, 0U);
  EXPECT_EQ(rotate(kGeometry, 65 << 10, kRound).mask, 0U);
}

TEST(Rotation, WithoutDataThereIsNone) {
  const Rotation rotation = rotate(kGeometry, 0, kRound);
  EXPECT_EQ(data_offset(rotation, 12'345), 0);
  EXPECT_FALSE(rotation.is_long);
}

TEST(Rotation, IsLongFromHalfARoundOn) {
  EXPECT_TRUE(rotate(kGeometry, 4 << 10, kRound).is_long);
  EXPECT_TRUE(rotate(kGeometry, 128 << 10, kRound).is_long);
  ReceiveGeometry few = kGeometry;
  few.slot_indexes = 8;
  EXPECT_FALSE(rotate(few, 128 << 10, kRound).is_long);
}

// Also where sequence numbers wrap.
TEST(Rotation, StaysWithinTheDataArea) {
  base::Prng prng(5);
  for (int i = 0; i < 10'000; ++i) {
    ReceiveGeometry geometry = kGeometry;
    geometry.slot_indexes = 2 << prng.below(6);
    const std::uint64_t lines = 1 + prng.below(4096);
    geometry.data_bytes = static_cast<std::int64_t>(lines) * kLineBytes;
    const std::int64_t bytes = static_cast<std::int64_t>(1 + prng.below(lines)) * kLineBytes;
    const auto round = static_cast<std::int64_t>(prng.below(16 << 20));
    const Rotation rotation = rotate(geometry, bytes, round);
    std::set<std::int64_t> places;
    for (std::uint64_t n = 0; n < 300; ++n) {
      const std::int64_t offset = data_offset(rotation, ~std::uint64_t{150} + n);
      ASSERT_GE(offset, 0);
      ASSERT_LE(offset + bytes, geometry.data_bytes);
      places.insert(offset);
    }
    ASSERT_LE(places.size(), rotation.mask + 1);
    const auto round_bytes =
        static_cast<std::int64_t>(rotation.mask + 1) * geometry.slot_indexes * bytes;
    ASSERT_TRUE(rotation.mask == 0 || round_bytes <= round);
  }
}

}  // namespace
}  // namespace unisono::plan::rotation_test
