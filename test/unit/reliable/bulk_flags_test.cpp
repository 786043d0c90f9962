// SPDX-License-Identifier: BSD-3-Clause
// Long puts by a remote memory that raises flags itself: which messages go there, and what happens
// if it cannot take them, or fails. In one thread, with virtual time.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "ranks.hpp"
#include "reliable/bulk/bulk.hpp"
#include "reliable/bulk/ordered_messages.hpp"

namespace unisono::reliable::bulk_flags_test {
namespace {

using transport::Completion;
using transport::RegionCard;
using transport::Transfer;

// Writes at once, and keeps what it was told.
class DirectMemory final : public transport::RemoteMemory {
 public:
  explicit DirectMemory(Ranks& ranks) : ranks_(ranks) {}

  std::string_view name() const override { return "direct"; }
  const RegionCard& card() const override { return card_; }
  base::Status meet(int, const RegionCard&) override { return base::success(); }
  bool raises_flags() const override { return true; }
  bool accepts_message(int rank) override {
    ++asked;
    return accepts && errors[static_cast<std::size_t>(rank)].empty();
  }
  bool write(const Transfer& transfer) override {
    written.push_back(transfer);
    std::byte* const region = ranks_.region(transfer.rank);
    if (transfer.bytes != 0) std::memcpy(region + transfer.offset, transfer.from, transfer.bytes);
    if (transfer.flag == transport::kNoFlag) return true;
    transport::raise(reinterpret_cast<std::uint64_t*>(region + transfer.flag), transfer.flag_value,
                     transfer.forward);
    return true;
  }
  bool read(const Transfer&) override { return false; }
  std::size_t poll(std::span<Completion>) override { return 0; }
  std::size_t under_way() const override { return unacknowledged; }
  std::uint64_t moved(int) const override { return 0; }
  void forget(int rank) override { forgotten.push_back(rank); }
  int descriptor() const override { return -1; }
  bool may_sleep() override { return true; }
  void tell(transport::Beside beside) { beside_ = beside; }
  const std::string& error_of(int rank) const override {
    return errors[static_cast<std::size_t>(rank)];
  }
  std::uint64_t failures() const override { return failed; }
  std::string device_loss() const override { return lost_device; }

  bool accepts = true;
  int asked = 0;
  std::vector<Transfer> written;
  std::size_t unacknowledged = 0;
  std::vector<int> forgotten;
  std::array<std::string, 3> errors;
  std::uint64_t failed = 0;
  std::string lost_device;

 private:
  Ranks& ranks_;
  RegionCard card_;
};

// Counts how often it is asked for datagrams.
class CountingDatagrams final : public transport::Datagrams {
 public:
  explicit CountingDatagrams(std::unique_ptr<transport::Datagrams> inner)
      : inner_(std::move(inner)) {}

  const transport::DatagramLimits& limits() const override { return inner_->limits(); }
  int rank() const override { return inner_->rank(); }
  std::size_t send(std::span<const transport::Outgoing> datagrams) override {
    return inner_->send(datagrams);
  }
  std::size_t receive(std::span<transport::Incoming> datagrams) override {
    ++asked;
    return inner_->receive(datagrams);
  }
  bool descriptor_tells() const override { return tells; }
  transport::DatagramCounts counts() const override { return inner_->counts(); }

  int asked = 0;
  bool tells = true;

 private:
  std::unique_ptr<transport::Datagrams> inner_;
};

constexpr std::size_t kLong = 1000;

class BulkFlags : public testing::Test {
 protected:
  void SetUp() override {
    bulk_ = make(0, &memory_);
    ASSERT_NE(bulk_, nullptr);
  }
  std::unique_ptr<Bulk> make(int rank, DirectMemory** memory_out) {
    auto memory = std::make_unique<DirectMemory>(ranks_);
    *memory_out = memory.get();
    BulkOptions options;
    options.rank = rank;
    options.ranks = 3;
    options.region = ranks_.region(rank);
    options.from_bytes = kLong;
    options.now_ns = [this] { return ranks_.network().now_ns(); };
    options.failed = [this](int lost, const std::string& why) { failed_.emplace_back(lost, why); };
    auto made = Bulk::over(ranks_.at(rank), std::move(memory), options);
    EXPECT_TRUE(made.ok());
    return made.ok() ? std::move(*made) : nullptr;
  }
  void put(int to, const std::vector<std::byte>& bytes, std::size_t place, std::uint64_t value) {
    auto* const flag = reinterpret_cast<std::uint64_t*>(ranks_.region(0) + kFlag);
    bulk_->put({.target = to,
                .source = bytes.data(),
                .place = ranks_.region(0) + place,
                .bytes = bytes.size(),
                .flag = value == 0 ? nullptr : flag,
                .flag_value = value});
  }
  bool is_there(int rank, const std::vector<std::byte>& bytes, std::size_t place) {
    return std::memcmp(ranks_.region(rank) + place, bytes.data(), bytes.size()) == 0;
  }
  void run() {
    bulk_->progress();
    ranks_.run_for(50 * kMillisecond);
  }

  Ranks ranks_{3};
  std::unique_ptr<Bulk> bulk_;
  DirectMemory* memory_ = nullptr;
  std::vector<std::pair<int, std::string>> failed_;
};

TEST_F(BulkFlags, ALongMessageGoesThereWithItsFlag) {
  put(1, pattern(kLong), 64, 5);
  ASSERT_EQ(memory_->written.size(), 1U);
  EXPECT_EQ(memory_->written[0].offset, 64U);
  EXPECT_EQ(memory_->written[0].flag, kFlag);
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(kLong), 64));
  EXPECT_EQ(bulk_->counts(), (BulkCounts{.written = 1}));
}

TEST_F(BulkFlags, AShortMessageGoesAsPackets) {
  put(1, pattern(kLong - 1), 64, 5);
  put(1, pattern(8), 2048, 0);
  put(1, {}, 0, 6);
  run();
  EXPECT_EQ(ranks_.word(1), 6U);
  EXPECT_TRUE(is_there(1, pattern(kLong - 1), 64));
  EXPECT_TRUE(is_there(1, pattern(8), 2048));
  EXPECT_TRUE(memory_->written.empty());
  EXPECT_EQ(memory_->asked, 0);
}

TEST_F(BulkFlags, ShortPiecesGoWithTheLongOneOfTheirMessage) {
  put(1, pattern(8, 9), 0, 0);
  put(1, pattern(kLong, 2), 64, 0);
  put(1, pattern(16, 3), 4096, 5);
  EXPECT_EQ(memory_->written.size(), 3U);
  EXPECT_EQ(memory_->asked, 1);
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(8, 9), 0));
  EXPECT_TRUE(is_there(1, pattern(16, 3), 4096));
  put(1, pattern(16, 4), 4096, 6);  // the next message is short
  EXPECT_EQ(memory_->written.size(), 3U);
}

TEST_F(BulkFlags, WhatItDoesNotAcceptGoesAsPacketsAsAWhole) {
  memory_->accepts = false;
  put(1, pattern(8, 9), 0, 0);
  put(1, pattern(kLong, 2), 64, 0);
  memory_->accepts = true;
  put(1, pattern(kLong, 3), 4096, 5);
  run();
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(8, 9), 0));
  EXPECT_TRUE(is_there(1, pattern(kLong, 2), 64));
  EXPECT_TRUE(is_there(1, pattern(kLong, 3), 4096));
  EXPECT_TRUE(memory_->written.empty());
  EXPECT_EQ(bulk_->counts(), (BulkCounts{.refused = 1}));
}

TEST_F(BulkFlags, ARankWithAnErrorIsLostOnce) {
  memory_->errors[1] = "the stream broke";
  memory_->failed = 1;
  bulk_->progress();
  bulk_->progress();
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0], std::pair(1, std::string("the stream broke")));
  EXPECT_TRUE(bulk_->has_lost(1));
  EXPECT_FALSE(bulk_->has_lost(2));
  EXPECT_EQ(bulk_->why_lost(1), "the stream broke");
}

// All connections end with the device, and no other rank is to blame.
TEST_F(BulkFlags, WithoutItsDeviceTheRankItselfIsLost) {
  EXPECT_EQ(bulk_->why_lost(0), "");
  memory_->errors[1] = memory_->errors[2] = "the connection ended";
  memory_->failed = 2;
  memory_->lost_device = "the device was removed";
  bulk_->progress();
  EXPECT_TRUE(failed_.empty());
  EXPECT_FALSE(bulk_->has_lost(1));
  EXPECT_FALSE(bulk_->has_lost(2));
  EXPECT_EQ(bulk_->why_lost(0), "the device was removed");
  EXPECT_EQ(bulk_->why_lost(1), "");
}

TEST_F(BulkFlags, DatagramsAreAskedForUnlessItIsKnownThatThereAreNone) {
  transport::VirtualDatagramNetwork network(2, steady());
  auto made = std::make_unique<CountingDatagrams>(network.attach(0));
  CountingDatagrams& datagrams = *made;
  ReliableOptions options;
  options.key = wire::key_of("test");
  options.ranks = 2;
  options.region = ranks_.region(0);
  options.region_bytes = kRegion;
  options.now_ns = [&network] { return network.now_ns(); };
  Reliable reliable(std::move(made), options);
  auto memory_made = std::make_unique<DirectMemory>(ranks_);
  DirectMemory& memory = *memory_made;
  BulkOptions bulk_options;
  bulk_options.ranks = 2;
  bulk_options.region = ranks_.region(0);
  bulk_options.now_ns = options.now_ns;
  auto bulk = Bulk::over(reliable, std::move(memory_made), bulk_options);
  ASSERT_TRUE(bulk.ok());
  const auto asks = [&] {
    const int before = datagrams.asked;
    (*bulk)->progress();
    return datagrams.asked != before;
  };
  using transport::Beside;
  for (const bool tells : {false, true}) {
    datagrams.tells = tells;
    for (const Beside told : {Beside::unknown, Beside::silent, Beside::readable}) {
      memory.tell(told);
      EXPECT_EQ(asks(), !tells || told != Beside::silent) << tells << static_cast<int>(told);
    }
  }
}

TEST_F(BulkFlags, ItIsSettledWhenNothingIsUnderWay) {
  run();
  memory_->unacknowledged = 1;
  EXPECT_FALSE(bulk_->settle());
  memory_->unacknowledged = 0;
  EXPECT_TRUE(bulk_->settle());
}

TEST_F(BulkFlags, AForgottenRankIsForgottenThereToo) {
  bulk_->forget(2);
  EXPECT_EQ(memory_->forgotten, std::vector<int>{2});
  put(2, pattern(kLong), 64, 5);
  EXPECT_TRUE(memory_->written.empty());
}

// The rank that is asked answers by its own remote memory.
TEST_F(BulkFlags, AnswersToGetsGoThereIfTheyAreLong) {
  DirectMemory* theirs = nullptr;
  const auto answering = make(1, &theirs);
  ASSERT_NE(answering, nullptr);
  const auto bytes = pattern(2 * kLong, 7);
  std::memcpy(ranks_.region(1) + 128, bytes.data(), bytes.size());
  bulk_->get({.source = 1,
              .offset = 128,
              .place = ranks_.region(0) + 8192,
              .bytes = bytes.size(),
              .flag = reinterpret_cast<std::uint64_t*>(ranks_.region(0) + kFlag),
              .flag_value = 8});
  run();
  EXPECT_EQ(ranks_.word(0), 8U);
  EXPECT_TRUE(is_there(0, bytes, 8192));
  EXPECT_EQ(theirs->written.size(), 1U);
}

}  // namespace
}  // namespace unisono::reliable::bulk_flags_test
