// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/staging_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>

namespace unisono::comm::staging_ring_test {
namespace {

constexpr std::int64_t kPlace = 4096;
constexpr std::int64_t kBytes = 1000;

bool all(std::uint64_t) { return true; }
bool none(std::uint64_t) { return false; }

StagingRing ring_of(std::int64_t bytes) {
  StagingRing ring;
  ring.begin(kPlace, bytes);
  return ring;
}

TEST(StagingRing, BlocksLieBehindEachOtherAndRoundAgain) {
  StagingRing ring = ring_of(kBytes);
  for (const std::int64_t at : {0, 300, 600, 0, 300}) {
    const std::int64_t place = ring.take(300, all);
    EXPECT_EQ(place, kPlace + at);
    ring.give_back_after(place, 0);
  }
}

TEST(StagingRing, WhatIsInUseOrStillReadIsNotHandedOut) {
  StagingRing ring = ring_of(kBytes);
  const std::int64_t first = ring.take(500, all), second = ring.take(500, all);
  EXPECT_EQ(second, kPlace + 500);
  EXPECT_EQ(ring.take(1, all), 0) << "nothing was given back";
  ring.give_back_after(second, 0);
  EXPECT_EQ(ring.take(1, all), 0) << "the oldest holds up the others";
  ring.give_back_after(first, 7);
  EXPECT_EQ(ring.take(1, none), 0) << "it is still read";
  EXPECT_FALSE(ring.is_all_free(none));
  EXPECT_TRUE(ring.is_all_free(all));
  EXPECT_EQ(ring.take(500, all), first);
}

TEST(StagingRing, ABlockLongerThanTheRingHasNoPlace) {
  StagingRing ring = ring_of(kBytes);
  EXPECT_EQ(ring.take(kBytes + 1, all), 0);
  EXPECT_EQ(ring.take(kBytes, all), kPlace);
}

TEST(StagingRing, MoreBlocksThanItCanCountHaveNoPlace) {
  constexpr auto kMost = static_cast<std::int64_t>(StagingRing::kMostBlocks);
  StagingRing ring = ring_of(2 * kMost);
  for (std::int64_t block = 0; block < kMost; ++block) {
    ASSERT_EQ(ring.take(1, all), kPlace + block);
  }
  EXPECT_EQ(ring.take(1, all), 0);
  ring.give_back_after(kPlace, 0);
  EXPECT_EQ(ring.take(1, all), kPlace + kMost);
}

TEST(StagingRing, WithoutMemoryItHoldsNothing) {
  const StagingRing ring;
  EXPECT_FALSE(ring.has_memory());
  EXPECT_FALSE(ring.holds(0));
  EXPECT_TRUE(ring_of(kBytes).holds(kPlace + kBytes - 1));
  EXPECT_FALSE(ring_of(kBytes).holds(kPlace + kBytes));
}

// Blocks in use never overlap, whatever their lengths and the order of giving back.
TEST(StagingRing, BlocksInUseNeverOverlap) {
  struct Used {
    std::int64_t place, bytes;
  };
  std::mt19937 random(1);
  StagingRing ring = ring_of(1 << 16);
  std::deque<Used> used;
  for (int i = 0; i < 20000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random() % 2000 + 1);
    const std::int64_t place = ring.take(bytes, all);
    if (place != 0) {
      ASSERT_TRUE(ring.holds(place) && ring.holds(place + bytes - 1));
      for (const Used& each : used) {
        ASSERT_TRUE(place + bytes <= each.place || each.place + each.bytes <= place);
      }
      used.push_back({place, bytes});
    }
    while (!used.empty() && (place == 0 || random() % 3 == 0)) {
      const std::size_t which = random() % used.size();
      ring.give_back_after(used[which].place, 0);
      used.erase(used.begin() + static_cast<std::ptrdiff_t>(which));
      if (random() % 2 == 0) break;
    }
  }
}

}  // namespace
}  // namespace unisono::comm::staging_ring_test
