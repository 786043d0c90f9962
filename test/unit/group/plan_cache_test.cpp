// SPDX-License-Identifier: BSD-3-Clause
// Calls that the windows are too small for: the error says by how much, and what to raise. That
// plans are right is seen by those who run them (local_counts_test.cpp, segments_test.cpp).
#include "group/plan_cache.hpp"

#include <gtest/gtest.h>

#include <string>

namespace unisono::group {
namespace {

using schedule::Blocks;
using schedule::Collective;

constexpr int kRanks = 4;

// Ranks 0 and 1 on one host, 2 and 3 on another.
PlanContext context_of(std::int64_t lines, std::int64_t data_bytes) {
  PlanContext context;
  context.ranks = kRanks;
  context.hosts = {0, 0, 1, 1};
  context.host_map = schedule::HostMap::of_labels(context.hosts);
  context.small = {.ranks = kRanks, .channels = 1, .lines = 1, .data_bytes = 0};
  context.bulk = {.ranks = kRanks, .channels = 1, .lines = lines, .data_bytes = data_bytes};
  return context;
}

Call alltoallv_of_own_counts() {
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
  const auto refused = short_of.find(alltoallv_of_own_counts(), true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::resources);
  EXPECT_EQ(refused.error().message,
            "linear on 4 ranks of several hosts needs a share of 64 bytes of the windows for each, "
            "but they have 0; raise UNISONO_BUFFERS");
  PlanCache enough(context_of(2 * kRanks, 64 * kRanks));
  const auto planned = enough.find(alltoallv_of_own_counts(), true);
  EXPECT_TRUE(planned.ok()) << planned.error().message;
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

}  // namespace
}  // namespace unisono::group
