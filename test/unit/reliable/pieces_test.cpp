// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/reliable/ranks.hpp"

namespace unisono::reliable::pieces_test {
namespace {

const wire::PacketFilter kGate(wire::key_of("test"), 1, 3);

std::vector<std::byte> packet_of(std::size_t payload_bytes, std::uint64_t number = 1) {
  const auto payload = pattern(payload_bytes);
  return joined(kGate.seal(kGate.header(wire::Kind::put, 0, number), payload), payload);
}

bool same(std::span<const std::byte> left, std::span<const std::byte> right) {
  return std::ranges::equal(left, right);
}

TEST(Pieces, MakeUpThePacketInAnyOrder) {
  for (const std::size_t payload : {1161, 1400, 8928}) {
    const auto packet = packet_of(payload);
    auto pieces = cut(kGate, 0, packet, 508);
    for (const PacketPiece& piece : pieces) {
      EXPECT_LE(wire::kHeaderBytes + piece.bytes.size(), 508U);
    }
    std::ranges::reverse(pieces);
    Pieces store(9000);
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      EXPECT_TRUE(store.take(pieces[i].header, pieces[i].bytes).empty());
      EXPECT_TRUE(store.take(pieces[i].header, pieces[i].bytes).empty()) << "the same again";
    }
    EXPECT_TRUE(same(store.take(pieces.back().header, pieces.back().bytes), packet));
  }
}

TEST(Pieces, OfDifferentRepetitionsFitTogether) {
  const auto packet = packet_of(1400);
  const auto first = cut(kGate, 0, packet, 1232);
  const auto again = cut(kGate, 0, packet, 1232);
  const auto shorter = cut(kGate, 0, packet, 508);
  ASSERT_EQ(first.size(), 2U);
  Pieces store(1472);
  EXPECT_TRUE(store.take(first[0].header, first[0].bytes).empty());
  EXPECT_TRUE(store.take(shorter[3].header, shorter[3].bytes).empty()) << "cut otherwise";
  EXPECT_TRUE(same(store.take(again[1].header, again[1].bytes), packet));
}

TEST(Pieces, OfManyPacketsAtOnce) {
  Pieces store(1472);
  for (std::uint64_t number = 1; number <= 64; ++number) {
    const auto packet = packet_of(1400, number);
    const auto pieces = cut(kGate, 0, packet, 1232);
    EXPECT_TRUE(store.take(pieces[0].header, pieces[0].bytes).empty());
  }
  for (std::uint64_t number = 1; number <= 64; ++number) {
    const auto packet = packet_of(1400, number);
    const auto pieces = cut(kGate, 0, packet, 1232);
    EXPECT_TRUE(same(store.take(pieces[1].header, pieces[1].bytes), packet)) << number;
  }
}

TEST(Pieces, ThatCannotBeAreNotBelieved) {
  const auto packet = packet_of(1400);
  const PacketPiece piece = cut(kGate, 0, packet, 1232)[1];
  Pieces store(1472);
  const auto refused = [&](auto change) {
    wire::Header header = piece.header;
    change(header);
    return store.take(header, piece.bytes).empty();
  };
  EXPECT_TRUE(refused([](wire::Header& h) { h.value = 1473; }));
  EXPECT_TRUE(refused([](wire::Header& h) { h.value = ~std::uint64_t{0}; }));
  EXPECT_TRUE(refused([](wire::Header& h) { h.value = 71; }));
  EXPECT_TRUE(refused([](wire::Header& h) { h.place = 1472; }));
  EXPECT_TRUE(refused([](wire::Header& h) { h.place += 8; }));
  EXPECT_TRUE(refused([](wire::Header& h) { h.position = 0; }));
  EXPECT_TRUE(refused([](wire::Header& h) { h.position = 8; }));
}

}  // namespace
}  // namespace unisono::reliable::pieces_test
