// SPDX-License-Identifier: BSD-3-Clause
// Which way an allgather goes in the NIC path is the same at all ranks, so it is computed, from
// nothing but the number of ranks and the length of a block.
#include "engine/nic/nic_allgather.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace unisono::engine {
namespace {

constexpr std::size_t kPacket = std::size_t{UNISONO_NIC_WORDS_MAX} * 8;

TEST(NicAllgatherJoins, ShortBlocksOfManyRanks) {
  for (int ranks = 2; ranks < 16; ++ranks) EXPECT_FALSE(nic_allgather_joins(ranks, 8)) << ranks;
  EXPECT_TRUE(nic_allgather_joins(16, 1));
  EXPECT_TRUE(nic_allgather_joins(16, 16));
  EXPECT_FALSE(nic_allgather_joins(16, 17)) << "measured: multicast is faster";
  EXPECT_TRUE(nic_allgather_joins(64, 32));
}

// Whatever is computed, the largest message has to fit a packet: half of the blocks, with a word
// before each.
TEST(NicAllgatherJoins, WhatFitsAPacket) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    std::size_t largest = 1;
    for (int distance = 1; distance < ranks; distance *= 2) {
      largest = std::max(largest, static_cast<std::size_t>(std::min(distance, ranks - distance)));
    }
    for (std::size_t words = 0; words <= UNISONO_NIC_WORDS_MAX; ++words) {
      if (!nic_allgather_joins(ranks, words * 8)) continue;
      EXPECT_LE(largest * (1 + words) * 8, kPacket) << ranks << " ranks, " << words << " words";
    }
  }
}

// What is joined at some length is joined at all shorter ones.
TEST(NicAllgatherJoins, AndAllShorterOnes) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    bool joins = true;
    for (std::size_t bytes = 0; bytes <= kPacket; bytes += 8) {
      const bool now = nic_allgather_joins(ranks, bytes);
      EXPECT_TRUE(joins || !now) << ranks << " ranks, " << bytes << " bytes";
      joins = now;
    }
  }
}

}  // namespace
}  // namespace unisono::engine
