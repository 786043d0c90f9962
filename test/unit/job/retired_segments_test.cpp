// SPDX-License-Identifier: BSD-3-Clause
#include "job/retired_segments.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "memory/memory_file.hpp"
#include "unit/job/tables.hpp"

namespace unisono::job::test::retired_segments_test {
namespace {

class RetiredSegmentsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kMemory = std::uint64_t{1} << 24;
  static constexpr std::int64_t kBytes = memory::kSegmentAlignment;

  void SetUp() override {
    auto mapped = memory::JobMemory::map(std::move(*memory::create_memory(kMemory)), kMemory);
    ASSERT_TRUE(mapped.ok());
    memory_ = std::move(*mapped);
    segments_.emplace(tables_.header(), own_.ranks, *memory_);
    for (RankHeader* entry = tables_.entries(); entry != tables_.entries() + 2; ++entry) {
      entry->state.store(static_cast<std::uint64_t>(RankState::present));
    }
  }
  // The segment has two members.
  std::int64_t retire(std::uint64_t next_sequence = 1) {
    const auto offset = memory_->allocate(kBytes);
    EXPECT_TRUE(offset.ok());
    segments_->add({*offset, kBytes, records_.data(), {0, 1}}, next_sequence);
    return *offset;
  }
  void record(int member, LeaveRecord how) {
    records_[static_cast<std::size_t>(member)].store(static_cast<std::uint64_t>(how));
  }
  // Whether a new segment gets the place.
  bool is_free(std::int64_t offset) {
    segments_->reclaim();
    const auto again = memory_->allocate(kBytes);
    EXPECT_TRUE(again.ok());
    return *again == offset;
  }

  Tables tables_{2};
  Parts own_{tables_, 0};
  std::shared_ptr<memory::JobMemory> memory_;
  std::optional<RetiredSegments> segments_;
  std::array<std::atomic<std::uint64_t>, 2> records_{};
};

TEST_F(RetiredSegmentsTest, ASegmentIsReusedWhenAllMembersHaveLeft) {
  const std::int64_t offset = retire();
  record(0, LeaveRecord::clean);
  EXPECT_FALSE(is_free(offset));
  record(1, LeaveRecord::clean);
  EXPECT_TRUE(is_free(offset));
}

TEST_F(RetiredSegmentsTest, ASegmentOfAFailedCommunicatorIsNot) {
  const std::int64_t offset = retire();
  record(0, LeaveRecord::clean);
  record(1, LeaveRecord::failed);
  EXPECT_FALSE(is_free(offset));
}

TEST_F(RetiredSegmentsTest, ASegmentOfALostRankIsNotAndIsAwaitedNoLonger) {
  const std::int64_t offset = retire();
  record(0, LeaveRecord::clean);
  EXPECT_TRUE(own_.losses.mark_gone(1, RankState::dead));
  EXPECT_FALSE(is_free(offset));
  record(1, LeaveRecord::clean);  // late, as from a rank that was only silent
  EXPECT_FALSE(is_free(offset)) << "it was emptied for good";
}

TEST_F(RetiredSegmentsTest, NewCommunicatorsBeginBeyondTheOldOnes) {
  EXPECT_EQ(segments_->least_sequence(), 0U);
  retire(7);
  retire(5);
  EXPECT_EQ(segments_->least_sequence(), 7U);
}

}  // namespace
}  // namespace unisono::job::test::retired_segments_test
