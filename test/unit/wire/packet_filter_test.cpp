// SPDX-License-Identifier: BSD-3-Clause
// The packets that a packet filter accepts and drops: every reason by a packet made for it, every
// bit of a packet changed, and thousands of random packets.
#include "wire/packet_filter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "wire/drops.hpp"

namespace unisono::wire::packet_filter_test {
namespace {

constexpr Key kKey{0x1122334455667788, 0x99aabbccddeeff00};
constexpr int kRanks = 4;

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  Bytes result(text.size());
  std::memcpy(result.data(), text.data(), text.size());
  return result;
}

Bytes packet(const PacketFilter& filter, const Header& header, const Bytes& payload) {
  const Envelope envelope = filter.seal(header, payload);
  Bytes result(envelope.size() + payload.size());
  std::copy(payload.begin(), payload.end(),
            std::copy(envelope.begin(), envelope.end(), result.begin()));
  return result;
}

Bytes packet(const PacketFilter& filter, std::uint32_t target, std::uint64_t sequence) {
  return packet(filter, filter.header(Kind::put, target, sequence), bytes_of("payload"));
}

TEST(Packet, BytesOnTheWire) {
  const PacketFilter filter(kKey, 2, kRanks);
  Header header = filter.header(Kind::put, 1, 0x0102030405060708);
  header.origin = 3;
  header.communicator = 0xa1a2a3a4;
  header.hop = 0xb1b2;
  header.position = 0xc1c2c3c4;
  header.place = 0xd1d2d3d4d5d6d7d8;
  header.flag = 0xe1e2e3e4e5e6e7e8;
  header.value = 0xf1f2f3f4f5f6f7f8;
  const Bytes whole = packet(filter, header, Bytes(0x0203, std::byte{9}));
  ASSERT_EQ(whole.size(), kHeaderBytes + 0x0203);
  const std::uint32_t job = job_of(kKey);
  const auto job_byte = [&](int i) { return static_cast<unsigned char>(job >> (8 * i)); };
  const unsigned char expected[64] = {
      'U',  'n',  4,    1,    job_byte(0), job_byte(1), job_byte(2), job_byte(3),  //
      8,    7,    6,    5,    4,           3,           2,           1,            //
      2,    0,    0,    0,    1,           0,           0,           0,            //
      3,    0,    0,    0,    0xa4,        0xa3,        0xa2,        0xa1,         //
      0xb2, 0xb1, 3,    2,    0xc4,        0xc3,        0xc2,        0xc1,         //
      0xd8, 0xd7, 0xd6, 0xd5, 0xd4,        0xd3,        0xd2,        0xd1,         //
      0xe8, 0xe7, 0xe6, 0xe5, 0xe4,        0xe3,        0xe2,        0xe1,         //
      0xf8, 0xf7, 0xf6, 0xf5, 0xf4,        0xf3,        0xf2,        0xf1};
  EXPECT_EQ(std::memcmp(whole.data(), expected, sizeof(expected)), 0);
}

TEST(Packet, ComesInAsItWentOut) {
  const PacketFilter sender(kKey, 2, kRanks);
  PacketFilter receiver(kKey, 1, kRanks);
  for (const std::uint32_t target : {1U, kToGroup}) {
    Header header = sender.header(Kind::nack, target, 77);
    header.place = 5;
    header.value = 6;
    const Bytes whole = packet(sender, header, bytes_of("some bytes"));
    const Parsed parsed = receiver.open(whole);
    ASSERT_EQ(parsed.drop, Drop::none);
    EXPECT_EQ(parsed.header.kind, UNISONO_PACKET_NACK);
    EXPECT_EQ(parsed.header.sequence, 77U);
    EXPECT_EQ(parsed.header.sender, 2U);
    EXPECT_EQ(parsed.header.target, target);
    EXPECT_EQ(parsed.header.place, 5U);
    EXPECT_EQ(parsed.header.flag, kNoPlace);
    EXPECT_EQ(parsed.header.value, 6U);
    EXPECT_EQ(Bytes(parsed.payload.begin(), parsed.payload.end()), bytes_of("some bytes"));
    EXPECT_EQ(parsed.payload.data(), whole.data() + kHeaderBytes);
  }
  EXPECT_EQ(receiver.drops().total(), 0U);
}

TEST(Packet, EmptyAndLongestPayload) {
  const PacketFilter sender(kKey, 0, kRanks);
  PacketFilter receiver(kKey, 1, kRanks);
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{65535}}) {
    const Header header = sender.header(Kind::put, 1, length);
    const Bytes whole = packet(sender, header, Bytes(length, std::byte{0x5a}));
    const Parsed parsed = receiver.admit(whole);
    ASSERT_EQ(parsed.drop, Drop::none) << length;
    EXPECT_EQ(parsed.payload.size(), length);
  }
}

// A packet that only one check can find, for each reason there is.
TEST(PacketFilter, EveryReasonForADrop) {
  const PacketFilter sender(kKey, 2, kRanks);
  const auto with = [&](const std::function<void(Header&)>& change) {
    Header header = sender.header(Kind::put, 1, 5);
    change(header);
    return packet(sender, header, bytes_of("x"));
  };
  Bytes cut = packet(sender, 1, 5);
  cut.pop_back();
  Bytes longer = packet(sender, 1, 5);
  longer.push_back(std::byte{0});
  Bytes huge(kHeaderBytes + 65536, std::byte{0});
  const Bytes whole = packet(sender, 1, 5);
  std::memcpy(huge.data(), whole.data(), kHeaderBytes);
  const Bytes one_less(whole.begin(), whole.begin() + kHeaderBytes - 1);
  const PacketFilter other_key({kKey.low ^ 1, kKey.high}, 2, kRanks);
  const struct {
    Drop drop;
    Bytes bytes;
  } cases[] = {
      {Drop::too_short, {}},
      {Drop::too_short, one_less},
      {Drop::magic, with([](Header& h) { h.magic ^= 1; })},
      {Drop::version, with([](Header& h) { ++h.version; })},
      {Drop::kind, with([](Header& h) { h.kind = 0; })},
      {Drop::kind, with([](Header& h) { h.kind = UNISONO_PACKET_KINDS; })},
      {Drop::length, cut},
      {Drop::length, longer},
      {Drop::length, huge},
      {Drop::job, with([](Header& h) { ++h.job; })},
      {Drop::job, packet(other_key, 1, 5)},
      {Drop::sender, with([](Header& h) { h.sender = kRanks; })},
      {Drop::sender, with([](Header& h) { h.sender = 1; })},
      {Drop::sender, with([](Header& h) { h.origin = kRanks; })},
      {Drop::target, with([](Header& h) { h.target = 0; })},
      {Drop::tag, packet(
                      other_key,
                      [&] {
                        Header header = other_key.header(Kind::put, 1, 5);
                        header.job = job_of(kKey);
                        return header;
                      }(),
                      bytes_of("x"))},
  };
  for (const auto& one : cases) {
    PacketFilter receiver(kKey, 1, kRanks);
    const Parsed parsed = receiver.admit(one.bytes);
    EXPECT_EQ(parsed.drop, one.drop) << drop_name(one.drop);
    EXPECT_TRUE(parsed.payload.empty());
    EXPECT_EQ(receiver.drops().of(one.drop), 1U);
    EXPECT_EQ(receiver.drops().total(), 1U);
    // And it has left no trace: the genuine packet is still fresh.
    EXPECT_EQ(receiver.admit(whole).drop, Drop::none);
  }
}

// Payloads below and above the length from which a digest stands for them.
class PacketFilterLength : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, PacketFilterLength, testing::Values(7, 255, 256, 300));

TEST_P(PacketFilterLength, NoBitMayDiffer) {
  const PacketFilter sender(kKey, 2, kRanks);
  const Bytes whole =
      packet(sender, sender.header(Kind::put, 1, 5), Bytes(GetParam(), std::byte{0x5a}));
  PacketFilter receiver(kKey, 1, kRanks);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes changed = whole;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(receiver.admit(changed).drop, Drop::none) << "bit " << bit;
  }
  EXPECT_EQ(receiver.drops().total(), whole.size() * 8);
  EXPECT_EQ(receiver.admit(whole).drop, Drop::none);
}

TEST(PacketFilter, APacketHasItsEffectOnce) {
  const PacketFilter sender(kKey, 2, kRanks);
  const PacketFilter third(kKey, 3, kRanks);
  PacketFilter receiver(kKey, 1, kRanks);
  const std::uint64_t start = ~std::uint64_t{0} - 3;  // the numbers wrap in the middle
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(receiver.admit(packet(sender, 1, start + i)).drop, Drop::none);
    // The same numbers to the group, and from another sender, are others.
    EXPECT_EQ(receiver.admit(packet(sender, kToGroup, start + i)).drop, Drop::none);
    EXPECT_EQ(receiver.admit(packet(third, 1, start + i)).drop, Drop::none);
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(receiver.admit(packet(sender, 1, start + i)).drop, Drop::replay);
    EXPECT_EQ(receiver.open(packet(sender, 1, start + i)).drop, Drop::none);
  }
  EXPECT_EQ(receiver.drops().of(Drop::replay), 8U);
}

// A packet recorded on one link is invalid on another, and back at its sender.
TEST(PacketFilter, APacketIsForItsReceiverOnly) {
  const PacketFilter sender(kKey, 2, kRanks);
  PacketFilter other(kKey, 0, kRanks);
  PacketFilter itself(kKey, 2, kRanks);
  EXPECT_EQ(other.admit(packet(sender, 1, 5)).drop, Drop::target);
  EXPECT_EQ(itself.admit(packet(sender, 1, 5)).drop, Drop::sender);
  EXPECT_EQ(itself.admit(packet(sender, kToGroup, 5)).drop, Drop::sender);
}

TEST(PacketFilter, StrangersBytesHaveNoEffect) {
  constexpr std::uint64_t kSeed = 23;
  base::Prng prng(kSeed);
  const PacketFilter sender(kKey, 2, kRanks);
  PacketFilter receiver(kKey, 1, kRanks);
  const std::int64_t turns = harness::scaled(200'000);
  std::uint64_t dropped = 0;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    Bytes bytes(prng.below(200));
    for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
    // Every second one has a right form, and a tag that was guessed.
    if (turn % 2 == 0) {
      Header header = sender.header(Kind::put, 1, prng.next());
      header.place = prng.next();
      header.value = prng.next();
      bytes = packet(sender, header, bytes);
      const std::uint64_t guess = prng.next();
      std::memcpy(bytes.data() + offsetof(Header, tag), &guess, sizeof(guess));
    }
    if (receiver.admit(bytes).drop != Drop::none) ++dropped;
  }
  EXPECT_EQ(dropped, static_cast<std::uint64_t>(turns)) << "seed " << kSeed;
  EXPECT_EQ(receiver.drops().total(), dropped);
  EXPECT_GE(receiver.drops().of(Drop::tag), dropped / 2);
  EXPECT_EQ(receiver.admit(packet(sender, 1, 1)).drop, Drop::none);
}

TEST(Drops, SayWhatWasDropped) {
  Drops drops;
  EXPECT_EQ(drops.text(), "");
  drops.count(Drop::replay);
  drops.count(Drop::tag);
  drops.count(Drop::tag);
  EXPECT_EQ(drops.text(), "tag 2, replay 1");
  EXPECT_EQ(drops.total(), 3U);
  for (std::size_t i = 0; i < kDropCount; ++i) {
    EXPECT_FALSE(drop_name(static_cast<Drop>(i)).empty());
    EXPECT_FALSE(drop_meaning(static_cast<Drop>(i)).empty());
  }
}

}  // namespace
}  // namespace unisono::wire::packet_filter_test
