// SPDX-License-Identifier: BSD-3-Clause
// Bursts of an Outbox: what leaves in one call, and when.
#include "reliable/link/outbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "unit/reliable/ranks.hpp"

namespace unisono::reliable::outbox_test {
namespace {

constexpr int kSenders = 4;
constexpr std::int64_t kAloneNs = 5000;
constexpr std::int64_t kCallNs = 1000;

struct Call {
  std::vector<int> targets;
  std::vector<std::byte> first_bytes;  // of each body
  std::vector<std::size_t> lengths;    // of the bodies
};

// Notes each call; a datagram takes its time.
class Recorder final : public transport::Datagrams {
 public:
  explicit Recorder(std::int64_t& now_ns) : now_ns_(now_ns) {}

  const transport::DatagramLimits& limits() const override { return limits_; }
  int rank() const override { return 0; }
  std::size_t send(std::span<const transport::Outgoing> datagrams) override {
    Call& call = calls.emplace_back();
    for (const transport::Outgoing& datagram : datagrams) {
      call.targets.push_back(datagram.target);
      call.first_bytes.push_back(datagram.body.empty() ? std::byte{0} : datagram.body[0]);
      call.lengths.push_back(datagram.body.size());
    }
    now_ns_ += kAloneNs;
    return has_room ? datagrams.size() : 0;
  }
  bool joins(int /*target*/) const override { return can_join; }
  std::size_t receive(std::span<transport::Incoming>) override { return 0; }
  transport::DatagramCounts counts() const override { return {}; }

  std::vector<Call> calls;
  bool can_join = true;
  bool has_room = true;

 private:
  std::int64_t& now_ns_;
  transport::DatagramLimits limits_{
      .name = "recorder", .max_payload = 1472, .batch = 64, .multicast = true};
};

class OutboxBursts : public ::testing::Test {
 protected:
  OutboxBursts() {
    outbox_.allow_bursts({.allowed = [this](std::int64_t) { return allowed_; },
                          .begun = [this](std::int64_t in_ns) { begun_.push_back(in_ns); }});
  }
  // A message that fits into one packet, whose number is its first byte. Its receiver has not
  // acknowledged it.
  std::uint32_t put(int target) {
    const auto to =
        target == transport::kGroup ? wire::kToGroup : static_cast<std::uint32_t>(target);
    now_ns_ += kCallNs;
    context_.now_ns = now_ns_;
    const std::vector<std::byte> payload(8, static_cast<std::byte>(++number_));
    const wire::Header header = context_.filter.header(wire::Kind::put, to, number_);
    std::uint32_t index = PacketPool::kNone;
    if (target == transport::kGroup) {
      outbox_.send(target, context_.filter.seal(header, payload), payload);
    } else {
      index = outbox_.keep(target, header, payload);
    }
    outbox_.flush_or_gather(target, payload.size());
    return index;
  }
  void begin_row() {
    for (std::int64_t i = 0; i < Burst::kRow; ++i) put(1);
    ASSERT_EQ(datagrams_.calls.size(), static_cast<std::size_t>(Burst::kRow));
    ASSERT_TRUE(begun_.empty());
    datagrams_.calls.clear();
  }

  std::int64_t now_ns_ = kMillisecond;
  Recorder datagrams_{now_ns_};
  Context context_{options(), 0};
  DatagramSizes sizes_{datagrams_,
                       {.hosts = context_.options.hosts,
                        .full_bytes = 1472,
                        .apart = context_.options.gap,
                        .ask = context_.options.ask},
                       {}};
  Outbox outbox_{context_, datagrams_, sizes_};
  bool allowed_ = true;
  std::vector<std::int64_t> begun_;
  std::uint64_t number_ = 0;

 private:
  ReliableOptions options() const {
    ReliableOptions all;
    all.key = wire::key_of("test");
    all.ranks = kSenders;
    all.hosts = topology::HostMap::apart(kSenders);
    all.now_ns = [this] { return now_ns_; };
    return all;
  }
};

TEST_F(OutboxBursts, ABurstIsOneCallWithItsTargetsTogether) {
  begin_row();
  for (int i = 0; i < Burst::kMost; ++i) put(1 + i % 3);
  ASSERT_EQ(datagrams_.calls.size(), 1U);
  const Call& call = datagrams_.calls[0];
  ASSERT_EQ(call.targets.size(), static_cast<std::size_t>(Burst::kMost));
  EXPECT_TRUE(std::ranges::is_sorted(call.targets));
  for (std::size_t i = 1; i < call.targets.size(); ++i) {
    if (call.targets[i] != call.targets[i - 1]) continue;
    EXPECT_EQ(
        std::to_integer<int>(call.first_bytes[i]) - std::to_integer<int>(call.first_bytes[i - 1]),
        3)
        << "packets to one target keep their order";
  }
  EXPECT_EQ(begun_, std::vector{Burst::kMost * kAloneNs});
  EXPECT_TRUE(outbox_.is_empty());
}

TEST_F(OutboxBursts, MulticastsGatherToo) {
  begin_row();
  for (int i = 0; i < Burst::kMost; ++i) put(transport::kGroup);
  ASSERT_EQ(datagrams_.calls.size(), 1U);
  EXPECT_EQ(datagrams_.calls[0].targets, std::vector<int>(Burst::kMost, transport::kGroup));
}

TEST_F(OutboxBursts, ALookEndsOne) {
  begin_row();
  for (int i = 0; i < 5; ++i) put(1);
  EXPECT_TRUE(datagrams_.calls.empty());
  outbox_.flush_after_look();
  ASSERT_EQ(datagrams_.calls.size(), 1U);
  EXPECT_EQ(datagrams_.calls[0].targets.size(), 5U);
  for (std::int64_t i = 1; i <= Burst::kAlone; ++i) {
    put(1);
    EXPECT_EQ(datagrams_.calls.size(), 1U + static_cast<std::size_t>(i));
  }
}

// No call follows, and another thread ends it.
TEST_F(OutboxBursts, EndsWhenItsTimeIsOver) {
  begin_row();
  for (int i = 0; i < 5; ++i) put(1);
  ASSERT_EQ(begun_.size(), 1U);
  now_ns_ += begun_[0];
  outbox_.end_burst();
  ASSERT_EQ(datagrams_.calls.size(), 1U);
  EXPECT_EQ(datagrams_.calls[0].targets.size(), 5U);
  outbox_.end_burst();
  EXPECT_EQ(datagrams_.calls.size(), 1U) << "nothing waits any more";
  put(1);
  EXPECT_EQ(datagrams_.calls.size(), 2U) << "a rank that paused does not only send";
}

TEST_F(OutboxBursts, AFlushTakesThemAlong) {
  begin_row();
  for (int i = 0; i < 5; ++i) put(1);
  outbox_.flush();
  ASSERT_EQ(datagrams_.calls.size(), 1U);
  EXPECT_EQ(datagrams_.calls[0].targets.size(), 5U);
}

TEST_F(OutboxBursts, NothingWaitsWhereItIsNotAllowed) {
  begin_row();
  allowed_ = false;
  for (int i = 0; i < 2 * Burst::kRow; ++i) put(1);
  EXPECT_EQ(datagrams_.calls.size(), 2U * Burst::kRow);
  EXPECT_TRUE(begun_.empty());
}

TEST_F(OutboxBursts, NothingWaitsWhereDatagramsDoNotJoin) {
  begin_row();
  datagrams_.can_join = false;
  for (int i = 0; i < 2 * Burst::kRow; ++i) put(1);
  EXPECT_EQ(datagrams_.calls.size(), 2U * Burst::kRow);
}

// Its receiver has acknowledged a packet that still waits: it leaves nothing behind.
TEST_F(OutboxBursts, APacketMayBeOverBeforeItLeaves) {
  begin_row();
  put(1);
  outbox_.release(put(2));
  put(1);
  outbox_.flush_after_look();
  EXPECT_TRUE(outbox_.is_empty());
  std::size_t sent = 0;
  for (const Call& call : datagrams_.calls) sent += call.targets.size();
  EXPECT_EQ(sent, 2U);
}

// Else they would wake the rank for room that it does not need.
TEST_F(OutboxBursts, DatagramsAreToldWhenNothingWaitsForRoomAnyMore) {
  datagrams_.has_room = false;
  allowed_ = false;
  const std::uint32_t index = put(1);
  outbox_.release(index);
  datagrams_.has_room = true;
  datagrams_.calls.clear();
  outbox_.flush();
  ASSERT_EQ(datagrams_.calls.size(), 1U);
  EXPECT_TRUE(datagrams_.calls[0].targets.empty());
  outbox_.flush();
  EXPECT_EQ(datagrams_.calls.size(), 1U);
}

// Puts of several packets.
class LongerBursts : public ::testing::Test {
 protected:
  LongerBursts() {
    ReliableOptions options;
    options.key = wire::key_of("test");
    options.ranks = kSenders;
    options.region = reinterpret_cast<std::byte*>(region_.data());
    options.region_bytes = kRegion;
    options.now_ns = [this] { return now_ns_; };
    auto datagrams = std::make_unique<Recorder>(now_ns_);
    datagrams_ = datagrams.get();
    reliable_ = std::make_unique<Reliable>(std::move(datagrams), options);
    reliable_->outbox().allow_bursts(
        {.allowed = [](std::int64_t) { return true; }, .begun = [](std::int64_t) {}});
  }
  void put(int target, std::size_t bytes) {
    now_ns_ += kCallNs;
    reliable_->put({.target = target,
                    .source = bytes_.data(),
                    .place = reinterpret_cast<std::byte*>(region_.data()),
                    .bytes = bytes,
                    .flag = &region_.back(),
                    .flag_value = ++number_});
  }
  void begin_row(std::size_t bytes, std::int64_t packets) {
    for (std::int64_t sent = packets; sent <= Burst::kRow; sent += packets) put(1, bytes);
    EXPECT_EQ(datagrams_->calls.size(), static_cast<std::size_t>(Burst::kRow / packets));
    datagrams_->calls.clear();
  }

  std::int64_t now_ns_ = kMillisecond;
  std::vector<std::uint64_t> region_ = std::vector<std::uint64_t>(kRegion / 8);
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kRegion);
  std::uint64_t number_ = 0;
  Recorder* datagrams_ = nullptr;
  std::unique_ptr<Reliable> reliable_;
};

// The kernel joins packets of equal length only.
TEST_F(LongerBursts, TheirPacketsAreEquallyLong) {
  put(1, 4096);
  EXPECT_EQ(datagrams_->calls[0].lengths, (std::vector<std::size_t>{1400, 1400, 1296}));
  datagrams_->calls.clear();
  now_ns_ += kMillisecond;
  begin_row(2048, 2);
  for (int i = 0; i < Burst::kMost / 4; ++i) put(1 + i % 3, 4096);
  ASSERT_EQ(datagrams_->calls.size(), 1U);
  const Call& call = datagrams_->calls[0];
  EXPECT_EQ(call.lengths, std::vector<std::size_t>(Burst::kMost, 1024));
  EXPECT_TRUE(std::ranges::is_sorted(call.targets));
  EXPECT_EQ(std::ranges::count(call.targets, 2), 4 * (Burst::kMost / 4 / 3));
}

TEST_F(LongerBursts, MulticastsToo) {
  const auto multicast = [this](std::size_t bytes) {
    now_ns_ += kCallNs;
    reliable_->put_to_all({.source = bytes_.data(),
                           .place = reinterpret_cast<std::byte*>(region_.data()),
                           .bytes = bytes,
                           .flag = &region_.back(),
                           .flag_value = ++number_});
  };
  begin_row(2048, 2);
  for (int i = 0; i < Burst::kMost / 4; ++i) multicast(4096);
  ASSERT_EQ(datagrams_->calls.size(), 1U);
  EXPECT_EQ(datagrams_->calls[0].lengths, std::vector<std::size_t>(Burst::kMost, 1024));
  EXPECT_EQ(datagrams_->calls[0].targets, std::vector<int>(Burst::kMost, transport::kGroup));
}

TEST_F(LongerBursts, OtherLengthsGatherAsTheyAre) {
  begin_row(2048, 2);
  put(1, 4100);  // no pieces of a multiple of 8
  put(1, 2000);
  EXPECT_TRUE(datagrams_->calls.empty());
  reliable_->progress();
  ASSERT_EQ(datagrams_->calls.size(), 1U);
  EXPECT_EQ(datagrams_->calls[0].lengths, (std::vector<std::size_t>{1400, 1400, 1300, 1000, 1000}));
}

TEST_F(LongerBursts, ALongMessageTakesThemAlong) {
  begin_row(2048, 2);
  put(1, 2048);
  EXPECT_TRUE(datagrams_->calls.empty());
  put(1, Burst::kMostMessage + 8);
  ASSERT_EQ(datagrams_->calls.size(), 1U);
  EXPECT_EQ(datagrams_->calls[0].lengths[2], 1400U);
}

}  // namespace
}  // namespace unisono::reliable::outbox_test
