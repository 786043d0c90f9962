// SPDX-License-Identifier: BSD-3-Clause
// Which collectives the NIC path does, and what each rank gives and takes there.
#include "plan/nic_call.hpp"

#include <gtest/gtest.h>

#include <string>

#include "model/default_machine.hpp"
#include "nic/program/tables.h"

namespace unisono::plan::test::nic_call_test {
namespace {

using schedule::Collective;

TEST(NicCall, WhatItDoes) {
  NicShape shape;
  shape.collective = Collective::reduce;
  shape.count = 3;
  shape.root = 1;
  const auto root = lower_call(shape, 1);
  const auto other = lower_call(shape, 0);
  ASSERT_TRUE(root.ok() && other.ok());
  EXPECT_EQ(root->combine, static_cast<std::uint32_t>(UNISONO_NIC_SUM_INT64));
  EXPECT_EQ(root->bytes, 24U);
  EXPECT_TRUE(root->takes && other->gives);
  EXPECT_FALSE(other->takes);
  shape.collective = Collective::broadcast;
  shape.type = arith::Type::float64;
  const auto from = lower_call(shape, 1);
  ASSERT_TRUE(from.ok());
  EXPECT_EQ(from->combine, static_cast<std::uint32_t>(UNISONO_NIC_OR));
  EXPECT_TRUE(from->gives && !from->takes);
  EXPECT_FALSE(lower_call(shape, 0)->gives);
  EXPECT_EQ(from->sender, 1) << "it may multicast its block";
  EXPECT_EQ(root->sender, -1);
}

// Short blocks of many hosts with one rank each are joined. The engine only does it.
TEST(NicCall, AnAllgatherThatJoinsBlocks) {
  const NicShape shape{.collective = Collective::allgather, .ranks = 16, .hosts = 16};
  EXPECT_TRUE(gather_off_trees(shape, 16).joins);
  EXPECT_FALSE(gather_off_trees(shape, 17).joins);
  EXPECT_FALSE(gather_off_trees({.ranks = 2, .hosts = 2}, 8).joins) << "few";
  EXPECT_FALSE(gather_off_trees({.ranks = 32, .hosts = 16}, 8).joins) << "two on each host";
  NicShape words = shape;
  words.count = 2;
  const auto call = lower_call(words, 3);
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(call->gathers && call->joins);
  EXPECT_EQ(call->bytes, 16U);
}

// Where hosts have several ranks, or there are many, blocks are parts of a vector on the tree.
TEST(NicCall, AnAllgatherOnTheTree) {
  NicShape shape;
  shape.collective = Collective::allgather;
  shape.type = arith::Type::byte;
  shape.count = 3;
  shape.ranks = 8;
  shape.hosts = 4;
  EXPECT_TRUE(lower_call(shape, 0)->gathers);
  shape.most_a_host = 2;
  const auto call = lower_call(shape, 5);
  ASSERT_TRUE(call.ok());
  EXPECT_FALSE(call->gathers);
  EXPECT_EQ(call->combine, static_cast<std::uint32_t>(UNISONO_NIC_OR));
  EXPECT_EQ(call->bytes, 24U);
  EXPECT_EQ(call->offset, 15U);
  EXPECT_EQ(call->gives, 3U);
  EXPECT_TRUE(call->takes && call->kernel != nullptr);
  shape.count = 350;
  EXPECT_FALSE(lower_call(shape, 7)->gathers);
  shape.count = 351;
  EXPECT_TRUE(lower_call(shape, 7)->gathers) << "longer blocks go by themselves";
  EXPECT_EQ(lower_call(shape, 7)->bytes, 351U);
  shape.hosts = 8;
  shape.count = 700;
  EXPECT_FALSE(lower_call(shape, 7)->gathers);
  shape.count = 701;
  EXPECT_TRUE(lower_call(shape, 7)->gathers) << "a vector has no more packets";
  shape.most_a_host = 1;
  shape.count = 700;
  EXPECT_TRUE(lower_call(shape, 7)->gathers);
  shape.ranks = UNISONO_NIC_RANKS_MAX + 1;
  shape.hosts = shape.ranks;
  shape.count = 8;
  EXPECT_FALSE(lower_call(shape, 64)->gathers);
  shape.count = 87;
  EXPECT_EQ(lower_call(shape, 64).error().message,
            "65 blocks of 87 bytes are faster without it; up to 5600 bytes of all go by it");
}

// Blocks of a host's ranks count together.
TEST(NicCall, HowLongTheBlocksOfAHostAre) {
  model::Machine machine = model::default_machine();
  machine.constants[static_cast<std::size_t>(model::Constant::nic_host_block)]->number = 9000;
  NicShape shape;
  shape.collective = Collective::allgather;
  shape.type = arith::Type::byte;
  shape.ranks = 12;
  shape.hosts = 4;
  shape.machine = &machine;
  for (const int places : {1, 2, 3}) {
    shape.most_a_host = places;
    shape.count = 9000 / places;
    EXPECT_TRUE(lower_call(shape, 0)->gathers);
    ++shape.count;
    EXPECT_EQ(lower_call(shape, 0).error().message,
              "blocks of " + std::to_string(shape.count) +
                  " bytes are faster without it; up to 9000 bytes of a host go by it");
  }
}

TEST(NicCall, WhatItDoesNot) {
  NicShape shape;
  shape.collective = Collective::scan;
  shape.count = 1;
  EXPECT_EQ(lower_call(shape, 0).error().message, "the NIC path does no scan");
  shape.collective = Collective::allreduce;
  shape.op = arith::Operator::minloc;
  shape.type = arith::Type::int32_int32;
  EXPECT_EQ(lower_call(shape, 0).error().code, base::Code::unsupported);
}

// The longest vectors that go there, and why longer ones do not.
TEST(NicCall, HowLongItsVectorsAre) {
  NicShape shape;
  const auto longest = [&](Collective collective, arith::Operator op, arith::Type type) {
    shape.collective = collective;
    shape.op = op;
    shape.type = type;
    shape.count = 1;
    while (lower_call(shape, 0).ok()) ++shape.count;
    return shape.count - 1;
  };
  using arith::Operator;
  using arith::Type;
  EXPECT_EQ(longest(Collective::allreduce, Operator::sum, Type::int64), 4 * 175);
  EXPECT_EQ(longest(Collective::reduce, Operator::bitwise_or, Type::uint8), 4 * 1400);
  EXPECT_EQ(longest(Collective::allreduce, Operator::max, Type::float64), 4 * 175);
  EXPECT_EQ(longest(Collective::reduce, Operator::sum, Type::float32), 2 * 350);
  EXPECT_EQ(longest(Collective::broadcast, Operator::sum, Type::float32), 350);
  EXPECT_EQ(longest(Collective::allreduce, Operator::sum, Type::float64), 2 * 175);
  EXPECT_EQ(lower_call(shape, 0).error().code, base::Code::unsupported);
  EXPECT_EQ(lower_call(shape, 0).error().message,
            "a vector of 2808 bytes is faster without it; up to 2800 bytes go by it");
}

}  // namespace
}  // namespace unisono::plan::test::nic_call_test
