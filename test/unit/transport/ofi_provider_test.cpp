// SPDX-License-Identifier: BSD-3-Clause
// Remote memory over a provider controlled by the test: parts that move, ranks without room, and a
// completion queue that fails. Built if libfabric's headers are installed.
#include <gtest/gtest.h>

#include <array>

#include "fake_ofi.hpp"

namespace unisono::transport::ofi_provider_test {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

class OfiProvider : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = fake_.open(4, region_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    memory_ = std::move(*opened);
  }
  bool write(int rank, std::size_t bytes, std::uint64_t token = 0) {
    return memory_->write(
        {.rank = rank, .offset = 64, .from = region_.data(), .bytes = bytes, .token = token});
  }
  bool read(int rank, std::size_t bytes, std::uint64_t token = 0) {
    return memory_->read(
        {.rank = rank, .offset = 64, .to = region_.data(), .bytes = bytes, .token = token});
  }
  std::vector<Completion> poll() {
    std::array<Completion, 16> all;
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(memory_->poll(all))};
  }

  FakeOfi fake_;
  std::vector<std::byte> region_{16 * kMebibyte};
  std::unique_ptr<RemoteMemory> memory_;
};

TEST_F(OfiProvider, EachPartOfATransferMoves) {
  for (const bool reads : {false, true}) {
    const std::uint64_t before = memory_->moved(1);
    ASSERT_TRUE(reads ? read(1, kMebibyte + 8, 7) : write(1, kMebibyte + 8, 7));
    ASSERT_EQ(fake_.posted.size(), 5U);
    std::uint64_t next = 64;
    for (const FakeOfi::Posted& part : fake_.posted) {
      EXPECT_EQ(part.is_read, reads);
      EXPECT_EQ(part.offset, next);
      next += part.bytes;
    }
    EXPECT_EQ(next, 64 + kMebibyte + 8);
    for (std::uint64_t ended = 1; ended <= 5; ++ended) {
      fake_.end_one(1);
      const auto complete = poll();
      EXPECT_EQ(memory_->moved(1), before + ended);
      ASSERT_EQ(complete.size(), ended == 5 ? 1U : 0U);
      if (ended == 5) {
        EXPECT_TRUE(complete[0].arrived);
      }
    }
    EXPECT_EQ(memory_->moved(2), 0U);
  }
}

TEST_F(OfiProvider, ARankThatTakesNothingLeavesRoomForOthers) {
  fake_.full = {1};
  ASSERT_TRUE(write(1, kMebibyte));
  ASSERT_TRUE(write(2, kMebibyte, 2));
  EXPECT_EQ(fake_.posted_to(1), 0U);
  EXPECT_EQ(fake_.posted_to(2), 4U);
  // A provider that takes all of it, and ends none.
  fake_.full.clear();
  ASSERT_TRUE(read(1, 15 * kMebibyte));
  poll();
  const std::size_t most = fake_.posted_to(1);
  EXPECT_LT(most, 64U);
  EXPECT_EQ(memory_->moved(1), 0U);
  ASSERT_TRUE(write(3, kMebibyte));
  EXPECT_EQ(fake_.posted_to(3), 4U);
  // When one ends, the next is posted, in order.
  fake_.end_one(1);
  poll();
  EXPECT_EQ(fake_.posted_to(1), most);
}

TEST_F(OfiProvider, WhatWaitsForRoomGoesInOrder) {
  fake_.full = {1};
  ASSERT_TRUE(write(1, 8, 1));
  ASSERT_TRUE(read(1, 16, 2));
  ASSERT_TRUE(write(1, 24, 3));
  poll();
  fake_.full.clear();
  poll();
  ASSERT_EQ(fake_.posted.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(fake_.posted[i].bytes, 8 * (i + 1));
}

class OfiProviderBroken : public OfiProvider {
 protected:
  // Some transfers are posted, others wait; then the queue fails.
  void expect_all_end() {
    fake_.full = {2};
    ASSERT_TRUE(write(1, kMebibyte, 1));
    ASSERT_TRUE(write(2, kMebibyte, 2));
    ASSERT_TRUE(read(3, kMebibyte, 3));
    fail_queue();
    std::array<bool, 4> ended{};
    for (const Completion& one : poll()) {
      EXPECT_FALSE(one.arrived);
      EXPECT_EQ(one.token, static_cast<std::uint64_t>(one.rank));
      ended[static_cast<std::size_t>(one.rank)] = true;
      const std::string& error = memory_->error_of(one.rank);
      EXPECT_NE(error.find("rank " + std::to_string(one.rank)), std::string::npos) << error;
      EXPECT_NE(error.find("completion queue failed"), std::string::npos) << error;
      EXPECT_NE(error.find("UNISONO_BULK=udp"), std::string::npos) << error;
    }
    EXPECT_EQ(ended, (std::array<bool, 4>{false, true, true, true}));
    EXPECT_EQ(memory_->under_way(), 0U);
    // Nothing is taken any more, and nothing keeps the rank awake.
    EXPECT_FALSE(write(1, 8));
    EXPECT_FALSE(read(1, 8));
    EXPECT_EQ(memory_->descriptor(), -1);
    EXPECT_TRUE(memory_->may_sleep());
    EXPECT_TRUE(poll().empty());
  }
  virtual void fail_queue() { fake_.queue_result = -FI_EIO; }
};

TEST_F(OfiProviderBroken, AQueueThatFailsEndsAllTransfers) { expect_all_end(); }

class OfiProviderErrorless : public OfiProviderBroken {
  void fail_queue() override {
    fake_.queue_result = -FI_EAVAIL;
    fake_.error_result = -FI_EIO;
  }
};

TEST_F(OfiProviderErrorless, AnErrorThatCannotBeReadEndsAllTransfers) { expect_all_end(); }

// It may still be read from by the provider.
TEST_F(OfiProviderBroken, MemoryOfWhatWasPostedIsNotUsedAgain) {
  ASSERT_TRUE(write(1, 8, 1));
  fail_queue();
  EXPECT_EQ(poll().size(), 1U);
  fake_.queue_result = 0;
  EXPECT_FALSE(write(1, 8, 2));
  fake_.end_one(1);
  EXPECT_TRUE(poll().empty());
}

}  // namespace
}  // namespace unisono::transport::ofi_provider_test
