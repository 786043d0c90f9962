// SPDX-License-Identifier: BSD-3-Clause
// Gets, packet by packet: what comes, how often, what is repeated, and what is not answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "reliable/link/get_payload.hpp"
#include "unit/reliable/ranks.hpp"

namespace unisono::reliable::get_test {
namespace {

constexpr std::size_t kFrom = 4096;
constexpr std::size_t kTo = 8192;

void get(Ranks& ranks, std::size_t bytes, std::uint64_t value) {
  ranks.at(0).get({.source = 1,
                   .offset = kFrom,
                   .place = ranks.region(0) + kTo,
                   .bytes = bytes,
                   .flag = reinterpret_cast<std::uint64_t*>(ranks.region(0) + kFlag),
                   .flag_value = value});
}

bool has_come(Ranks& ranks, const std::vector<std::byte>& bytes) {
  return std::equal(bytes.begin(), bytes.end(), ranks.region(0) + kTo);
}

TEST(Get, BringsBytesOfSeveralPacketsThenTheFlag) {
  Ranks ranks(2);
  const auto bytes = pattern(5'000);
  std::ranges::copy(bytes, ranks.region(1) + kFrom);
  get(ranks, bytes.size(), 7);
  EXPECT_TRUE(ranks.run_until(kMillisecond, [&] { return ranks.word(0) == 7; }));
  EXPECT_TRUE(has_come(ranks, bytes));
  EXPECT_EQ(ranks.at(0).counts().packets, 1U);
  EXPECT_EQ(ranks.at(1).counts().packets, 4U);
  EXPECT_EQ(ranks.at(0).counts().asked, 0U);
}

// No rank waits at the other side, so the asking rank makes sure that the request arrives.
TEST(Get, IsRepeatedUntilItIsAnswered) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    transport::VirtualDatagramOptions bad;
    bad.seed = seed;
    bad.loss = 0.3;
    bad.duplicates = 0.1;
    bad.reorder = true;
    Ranks ranks(2, bad);
    for (std::uint64_t turn = 1; turn <= 5; ++turn) {
      const auto bytes = pattern(3'000, static_cast<unsigned>(turn));
      std::ranges::copy(bytes, ranks.region(1) + kFrom);
      get(ranks, bytes.size(), turn);
      ASSERT_TRUE(ranks.run_until(
          10'000 * kMillisecond, [&] { return ranks.word(0) == turn; },
          [&] { ranks.at(0).awaits(1); }));
      ASSERT_TRUE(has_come(ranks, bytes));
    }
  }
}

TEST(Get, OutsideOfTheRegionIsDropped) {
  Ranks ranks(3);
  const auto wire = ranks.network().attach(2);
  const wire::PacketFilter own(wire::key_of("test"), 2, 3);
  const auto send = [&](std::uint64_t from, std::uint64_t flag, const GetTarget& target,
                        std::size_t payload_bytes = kGetPayloadBytes) {
    wire::Header header = own.header(wire::Kind::get, 0, 1);
    header.place = from;
    header.flag = flag;
    header.value = 1;
    const GetPayload payload = encode_get(target);
    const auto sent = std::span(payload).first(payload_bytes);
    const wire::Envelope envelope = own.seal(header, sent);
    const transport::Outgoing datagram{0, envelope, sent};
    ASSERT_EQ(wire->send({&datagram, 1}), 1U);
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  send(kRegion - 7, 0, {0, 8});
  send(kMost - 3, 0, {0, 8});
  send(0, 0, {kRegion - 7, 8});
  send(0, 0, {0, kMost});
  send(0, 0, {0, 0});
  send(0, 4, {0, 8});
  send(0, kRegion, {0, 8});
  send(0, wire::kNoPlace, {0, 8});
  send(0, 0, {0, 8}, 8);
  ranks.run_for(kMillisecond);
  EXPECT_EQ(ranks.at(0).counts().misplaced, 9U);
  EXPECT_EQ(ranks.at(0).counts().packets, 0U);
}

TEST(Get, PayloadIsLittleEndianAndReadAsWritten) {
  const GetTarget target{0x0102030405060708, 0x1112131415161718};
  const GetPayload payload = encode_get(target);
  EXPECT_EQ(payload[0], std::byte{0x08});
  EXPECT_EQ(payload[15], std::byte{0x11});
  EXPECT_EQ(decode_get(payload), target);
  EXPECT_FALSE(decode_get(std::span(payload).first(15)));
}

}  // namespace
}  // namespace unisono::reliable::get_test
