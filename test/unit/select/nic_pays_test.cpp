// SPDX-License-Identifier: BSD-3-Clause
// Which way an allgather goes in the NIC path is the same at all ranks, so it is computed, from
// nothing but the number of ranks and the length of a block.
#include "select/nic/pays.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/default_machine.hpp"
#include "nic/program/tables.h"

namespace unisono::select::nic_pays_test {
namespace {

NicBlockCosts costs() { return NicBlockCosts::of(model::default_machine()); }
constexpr std::size_t kPacket = std::size_t{UNISONO_NIC_WORDS_MAX} * 8;

TEST(NicJoinsBlocks, ShortBlocksOfManyRanks) {
  for (int ranks = 2; ranks < 16; ++ranks)
    EXPECT_FALSE(nic_joins_blocks(costs(), ranks, 8)) << ranks;
  EXPECT_TRUE(nic_joins_blocks(costs(), 16, 1));
  EXPECT_TRUE(nic_joins_blocks(costs(), 16, 16));
  EXPECT_FALSE(nic_joins_blocks(costs(), 16, 17)) << "measured: multicast is faster";
  EXPECT_TRUE(nic_joins_blocks(costs(), 64, 32));
}

// Whatever is computed, the largest message has to fit a packet: half of the blocks, with a word
// before each.
TEST(NicJoinsBlocks, WhatFitsAPacket) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    std::size_t largest = 1;
    for (int distance = 1; distance < ranks; distance *= 2) {
      largest = std::max(largest, static_cast<std::size_t>(std::min(distance, ranks - distance)));
    }
    for (std::size_t words = 0; words <= UNISONO_NIC_WORDS_MAX; ++words) {
      if (!nic_joins_blocks(costs(), ranks, words * 8)) continue;
      EXPECT_LE(largest * (1 + words) * 8, kPacket) << ranks << " ranks, " << words << " words";
    }
  }
}

// If blocks of some length are joined, all shorter ones are.
TEST(NicJoinsBlocks, AndAllShorterOnes) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    bool joins = true;
    for (std::size_t bytes = 0; bytes <= kPacket; bytes += 8) {
      const bool now = nic_joins_blocks(costs(), ranks, bytes);
      EXPECT_TRUE(joins || !now) << ranks << " ranks, " << bytes << " bytes";
      joins = now;
    }
  }
}

TEST(NicBytesThatPay, AreThoseOfTheMachineFileUpToTheLongestVector) {
  model::Machine machine = model::default_machine();
  const auto up_to = [&machine](schedule::Collective collective, std::uint32_t combine) {
    return nic_bytes_that_pay(machine, collective, combine);
  };
  EXPECT_EQ(up_to(schedule::Collective::broadcast, UNISONO_NIC_OR), kPacket);
  EXPECT_EQ(up_to(schedule::Collective::allreduce, UNISONO_NIC_SUM_FLOAT64), 2 * kPacket);
  EXPECT_EQ(up_to(schedule::Collective::allreduce, UNISONO_NIC_OR), 4 * kPacket);
  auto& reals = machine.constants[static_cast<std::size_t>(model::Constant::nic_real_vector)];
  reals->number = 16;
  EXPECT_EQ(up_to(schedule::Collective::allreduce, UNISONO_NIC_SUM_FLOAT32), 16U);
  reals->number = 1e9;
  EXPECT_EQ(up_to(schedule::Collective::allreduce, UNISONO_NIC_SUM_FLOAT32), 4 * kPacket);
  reals.reset();
  EXPECT_EQ(up_to(schedule::Collective::allreduce, UNISONO_NIC_SUM_FLOAT32), 2 * kPacket)
      << "a file that lacks it has the default machine's";
}

}  // namespace
}  // namespace unisono::select::nic_pays_test
