// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/moderation.hpp"

#include <gtest/gtest.h>

namespace unisono::reliable::moderation_test {
namespace {

// The time of a packet on a link of 200 Mbit/s.
constexpr std::int64_t kPacketNs = 60'000;
constexpr std::uint64_t kMany = 1000;

TEST(Moderation, LeavesSomePacketsOfALongMessageToGather) {
  Moderation moderation;
  EXPECT_EQ(moderation.pause_ns(), 0);
  std::int64_t now = 1'000'000'000;
  moderation.note(now, 1, false, kMany);
  EXPECT_EQ(moderation.pause_ns(), 0) << "the pace is not known yet";
  for (int look = 0; look < 5; ++look) {
    now += 3 * kPacketNs;
    moderation.note(now, 3, false, kMany);
    EXPECT_EQ(moderation.pause_ns(), Moderation::kPackets * kPacketNs);
  }
}

TEST(Moderation, ASlowLinkIsLookedAtInTime) {
  Moderation moderation;
  moderation.note(1'000'000'000, 1, false, kMany);
  moderation.note(1'000'900'000, 1, false, kMany);
  EXPECT_EQ(moderation.pause_ns(), Moderation::kMostNs);
}

TEST(Moderation, AFastOneIsNotWorthATimer) {
  Moderation moderation;
  moderation.note(1'000'000'000, 1, false, kMany);
  moderation.note(1'000'100'000, 100, false, kMany);
  EXPECT_EQ(moderation.pause_ns(), 0);
}

TEST(Moderation, WhatIsWholeIsUsedAtOnce) {
  Moderation moderation;
  moderation.note(1'000'000'000, 1, false, kMany);
  moderation.note(1'000'000'000 + kPacketNs, 1, true, kMany);
  EXPECT_EQ(moderation.pause_ns(), 0);
}

TEST(Moderation, NobodyWaitsForMorePacketsThanFollow) {
  for (const std::uint64_t following : {0, 1, 2, 5}) {
    Moderation moderation;
    moderation.note(1'000'000'000, 1, false, kMany);
    moderation.note(1'000'000'000 + 3 * kPacketNs, 3, false, following);
    EXPECT_EQ(moderation.pause_ns(), static_cast<std::int64_t>(following) * kPacketNs);
  }
}

TEST(Moderation, WhatAPeerAnnouncesMayBeAnything) {
  Moderation moderation;
  moderation.note(1'000'000'000, 1, false, ~std::uint64_t{0});
  moderation.note(1'000'000'000 + kPacketNs, 1, false, ~std::uint64_t{0});
  EXPECT_EQ(moderation.pause_ns(), Moderation::kPackets * kPacketNs);
}

TEST(Moderation, WhereNothingMoreComesTheNextPacketIsSeenAtOnce) {
  Moderation moderation;
  moderation.note(1'000'000'000, 1, false, kMany);
  moderation.note(1'000'000'000 + kPacketNs, 1, false, kMany);
  EXPECT_GT(moderation.pause_ns(), 0);
  moderation.note(1'000'000'000 + 9 * kPacketNs, 0, false, kMany);
  EXPECT_EQ(moderation.pause_ns(), 0);
}

}  // namespace
}  // namespace unisono::reliable::moderation_test
