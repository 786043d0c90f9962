// SPDX-License-Identifier: BSD-3-Clause
// Calls that the receive buffers are too small for: the error says by how much, and what to raise.
// Which calls share what was bound, and for how long. That plans are right is seen by those who run
// them (local_counts_test.cpp, segments_test.cpp).
#include "plan/plan_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "arith/kernel.hpp"

namespace unisono::plan::plan_cache_test {
namespace {

using schedule::Blocks;
using schedule::Collective;

constexpr int kRanks = 4;

// Ranks 0 and 1 on one host, 2 and 3 on another.
PlanContext context_of(std::int64_t lines, std::int64_t data_bytes) {
  PlanContext context;
  context.ranks = kRanks;
  context.hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1});
  context.receive_buffers[SizeClass::small] = {
      .ranks = kRanks, .slot_indexes = 1, .lines = 1, .data_bytes = 0};
  context.receive_buffers[SizeClass::bulk] = {
      .ranks = kRanks, .slot_indexes = 1, .lines = lines, .data_bytes = data_bytes};
  return context;
}

Call alltoallv_of_local_counts() {
  Call call{.collective = Collective::alltoall, .purpose = Purpose::user_blocks};
  call.local_counts = true;
  call.count = kRanks;
  call.element_bytes = 8;
  const std::vector<std::int64_t> counts(kRanks, 1);
  call.blocks = *Blocks::of_pairs_of(0, counts, counts);
  return call;
}

TEST(PlanCache, RanksOfSeveralHostsThatKnowTheirOwnCountsOnlyNeedAShareForEach) {
  PlanCache short_of(context_of(2 * kRanks, 64 * kRanks - 64));
  const auto refused = short_of.find(alltoallv_of_local_counts(), true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::resources);
  EXPECT_EQ(refused.error().message,
            "linear on 4 ranks of several hosts needs a share of 64 bytes of the receive buffers "
            "for each, "
            "but they have 0; raise UNISONO_BUFFERS");
  PlanCache enough(context_of(2 * kRanks, 64 * kRanks));
  const auto planned = enough.find(alltoallv_of_local_counts(), true);
  EXPECT_TRUE(planned.ok()) << planned.error().message;
}

// Where streams carry long messages, the machine file says how long their pieces are.
TEST(PlanCache, LongVectorsHaveSegmentsOfAFewPieces) {
  constexpr std::int64_t kPiece = 96 * 1024;
  model::Machine machine = model::default_machine();
  machine.constants[static_cast<std::size_t>(model::Constant::streamed_piece)] =
      model::Value{.number = kPiece, .unit = model::Unit::bytes, .where = "this test"};
  PlanContext context = context_of(2 * kRanks, 32 * kPiece);
  context.machine = &machine;
  EXPECT_EQ(most_of_segment(context, Collective::broadcast), 32 * kPiece) << "no streams";
  context.streams = true;
  EXPECT_EQ(most_of_segment(context, Collective::broadcast), 8 * kPiece);
  EXPECT_EQ(most_of_segment(context, Collective::allreduce), 4 * kPiece);
  EXPECT_EQ(most_of_segment(context, Collective::allgather), 32 * kPiece) << "of blocks";
  context.receive_buffers[SizeClass::bulk].data_bytes = 8 * kPiece - 1;
  EXPECT_EQ(most_of_segment(context, Collective::broadcast), 8 * kPiece - 1);
  context.receive_buffers[SizeClass::bulk].data_bytes = kPiece / 2;
  EXPECT_EQ(most_of_segment(context, Collective::reduce), kPiece / 2);
}

TEST(PlanCache, AnElementThatTheWindowsDoNotHoldIsAnErrorWithWhatItNeeds) {
  Call call{.collective = Collective::alltoall, .count = 1, .element_bytes = 4096};
  PlanCache short_of(context_of(2 * kRanks, 1024));
  const auto refused = short_of.find(call, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::resources);
  EXPECT_NE(refused.error().message.find("bytes, but they have 8 and 1024; raise UNISONO_BUFFERS"),
            std::string::npos)
      << refused.error().message;
  PlanCache enough(context_of(2 * kRanks, 1 << 20));
  EXPECT_TRUE(enough.find(call, true).ok());
}

Call allreduce(arith::Type type, arith::Operator op, std::int64_t element_bytes) {
  return {.collective = Collective::allreduce,
          .count = 100,
          .type = static_cast<std::int32_t>(type),
          .op = static_cast<std::int32_t>(op),
          .element_bytes = element_bytes};
}

const Call kSumOfInt32 = allreduce(arith::Type::int32, arith::Operator::sum, 4);

TEST(PlanCache, TypesOfOneSizeAndOperatorsShareWhatIsBound) {
  PlanCache plans(context_of(64, 1 << 16));
  const Plan& sum = **plans.find(kSumOfInt32, true);
  const Plan& most = **plans.find(allreduce(arith::Type::float32, arith::Operator::max, 4), true);
  EXPECT_NE(&sum, &most);
  EXPECT_EQ(sum.parts.get(), most.parts.get());
  EXPECT_EQ(sum.algorithm, most.algorithm);
  EXPECT_NE(sum.digest, most.digest);
  EXPECT_EQ(sum.kernel, arith::find_kernel(arith::Operator::sum, arith::Type::int32));
  EXPECT_EQ(most.kernel, arith::find_kernel(arith::Operator::max, arith::Type::float32));
}

// A plan that was found before stays usable until the next call that may evict.
TEST(PlanCache, ASettledPlanNoLongerLearns) {
  PlanContext context = context_of(64, 1 << 16);
  context.learns = true;
  PlanCache plans(context);
  const Plan* const usual = *plans.find(kSumOfInt32, true);
  EXPECT_TRUE(usual->learns);
  EXPECT_TRUE(usual->has_extras);
  const std::uint64_t generation = plans.generation();
  plans.settle(*usual, *usual);
  EXPECT_NE(plans.generation(), generation);
  const Plan* const settled = *plans.find(kSumOfInt32, false);
  EXPECT_NE(settled, usual);
  EXPECT_FALSE(settled->has_extras);
  EXPECT_EQ(settled->learned, nullptr);
  EXPECT_EQ(settled->digest, usual->digest);
  EXPECT_EQ(usual->algorithm, settled->algorithm);
  plans.settle(*usual, *usual);  // no longer a plan of the cache
  EXPECT_EQ(*plans.find(kSumOfInt32, false), settled);
  // Another call with the same programs still learns.
  const Plan& other = **plans.find(allreduce(arith::Type::float32, arith::Operator::max, 4), true);
  EXPECT_TRUE(other.learns);
}

TEST(PlanCache, BlockingCallsOfASettledPlanTakeTheLearnedOne) {
  PlanContext context = context_of(64, 1 << 16);
  context.learns = true;
  PlanCache plans(context);
  const Plan* const usual = *plans.find(kSumOfInt32, true);
  const auto alternatives = plans.alternatives(kSumOfInt32);
  ASSERT_GE(alternatives.size(), 2U);
  const auto other = plans.make_as(kSumOfInt32, alternatives[1]);
  ASSERT_TRUE(other.ok());
  plans.settle(*usual, **other);
  const Plan* const settled = *plans.find(kSumOfInt32, false);
  EXPECT_EQ(settled->algorithm, usual->algorithm);
  ASSERT_NE(settled->learned, nullptr);
  EXPECT_EQ(settled->learned->algorithm, (*other)->algorithm);
  EXPECT_FALSE(settled->learned->has_extras);
  EXPECT_TRUE(settled->has_extras) << "the test that leads to the learned one";
}

TEST(PlanCache, AllElseThatProgramsDependOnTellsThemApart) {
  PlanCache plans(context_of(64, 1 << 16));
  std::vector<Call> calls(8, kSumOfInt32);
  calls[1].count = 99;
  calls[2].element_bytes = 8;  // and the type with it
  calls[3].ordered = true;
  calls[4].op = kFirstUserNumber;  // nobody helps with it
  calls[5].collective = Collective::scan;
  calls[6].collective = calls[7].collective = Collective::reduce;
  calls[7].root = 1;
  calls[2].type = static_cast<std::int32_t>(arith::Type::int64);
  std::vector<std::shared_ptr<const Plan::Part[]>> parts;
  for (const Call& call : calls) {
    const auto found = plans.find(call, true);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(std::ranges::count(parts, (*found)->parts), 0);
    parts.push_back((*found)->parts);
  }
}

TEST(PlanCache, BlocksThatLieElsewhereAreBoundAnew) {
  PlanCache plans(context_of(64, 1 << 16));
  Call call{.collective = Collective::allgather, .purpose = Purpose::user_blocks, .count = 10};
  call.blocks = *Blocks::of_ranks({1, 2, 3, 4});
  call.element_bytes = 4;
  Call elsewhere = call;
  elsewhere.output_places =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{9, 6, 3, 0});
  Call other_type = elsewhere;
  other_type.type = call.type + 1;
  const Plan& dense = **plans.find(call, true);
  const Plan& apart = **plans.find(elsewhere, true);
  const Plan& again = **plans.find(other_type, true);
  EXPECT_NE(dense.parts.get(), apart.parts.get());
  EXPECT_EQ(apart.parts.get(), again.parts.get());
}

TEST(PlanCache, WhatIsBoundGoesWithTheLastPlanThatHasIt) {
  PlanCache plans(context_of(64, 1 << 16));
  const auto pinned = (*plans.find(kSumOfInt32, true))->shared_from_this();
  Call call = kSumOfInt32;
  call.count = 101;
  const std::weak_ptr<const Plan> unpinned = (*plans.find(call, true))->weak_from_this();
  const std::uint64_t generation = plans.generation();
  while (plans.generation() == generation) {
    ++call.count;
    ASSERT_LT(call.count, 10000) << "plans for ever new counts are all kept";
    ASSERT_TRUE(plans.find(call, true).ok());
  }
  EXPECT_TRUE(unpinned.expired());
  const auto alike = plans.find(allreduce(arith::Type::uint32, arith::Operator::sum, 4), true);
  EXPECT_EQ((*alike)->parts.get(), pinned->parts.get());
}

TEST(PlanCache, AnotherAlgorithmIsBoundAnew) {
  PlanCache plans(context_of(64, 1 << 16));
  const auto before = (*plans.find(kSumOfInt32, true))->parts;
  plans.override_with(*select::parse_overrides("allreduce: ring"));
  const Plan& after = **plans.find(kSumOfInt32, true);
  EXPECT_EQ(after.algorithm, "ring");
  EXPECT_NE(after.parts.get(), before.get());
}

}  // namespace
}  // namespace unisono::plan::plan_cache_test
