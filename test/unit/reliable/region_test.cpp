// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/region.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "reliable/link/get_payload.hpp"

namespace unisono::reliable::region_test {
namespace {

constexpr std::size_t kWords = 8;
constexpr std::uint64_t kBytes = kWords * 8;
constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max() - 3;

struct Memory {
  std::array<std::uint64_t, kWords> words{};
  Region region{reinterpret_cast<std::byte*>(words.data()), kBytes};
};

wire::Parsed put_of(std::uint64_t place, std::span<const std::byte> payload,
                    std::uint64_t flag = wire::kNoPlace) {
  wire::Parsed packet;
  packet.header.place = place;
  packet.header.flag = flag;
  packet.payload = payload;
  return packet;
}

TEST(Region, APutHasToLieInItWithItsFlag) {
  const Memory memory;
  const std::vector<std::byte> payload(16);
  EXPECT_TRUE(memory.region.fits_put(put_of(0, payload)));
  EXPECT_TRUE(memory.region.fits_put(put_of(kBytes - 16, payload, kBytes - 8)));
  EXPECT_TRUE(memory.region.fits_put(put_of(kHuge, {}, 0))) << "no payload, no place";
  EXPECT_FALSE(memory.region.fits_put(put_of(kBytes - 15, payload)));
  EXPECT_FALSE(memory.region.fits_put(put_of(kBytes + 1, payload)));
  EXPECT_FALSE(memory.region.fits_put(put_of(kHuge, payload))) << "the sum wraps";
  EXPECT_FALSE(memory.region.fits_put(put_of(0, payload, kBytes)));
  EXPECT_FALSE(memory.region.fits_put(put_of(0, payload, kHuge - kHuge % 8)));
  EXPECT_TRUE(memory.region.fits_put(put_of(0, payload, 8 + wire::kForward)));
  EXPECT_FALSE(memory.region.fits_put(put_of(0, payload, 8 + wire::kForward + 1)));
}

TEST(Region, AGetHasToLieInItOnBothSides) {
  const Memory memory;
  const auto fits = [&memory](std::uint64_t source, std::uint64_t target, std::uint64_t bytes,
                              std::uint64_t flag) {
    const GetPayload payload = encode_get({target, bytes});
    return memory.region.fits_get(put_of(source, payload, flag));
  };
  EXPECT_TRUE(fits(0, 8, kBytes - 8, 0));
  EXPECT_FALSE(fits(0, 16, kBytes - 8, 0));
  EXPECT_FALSE(fits(16, 0, kBytes - 8, 0));
  EXPECT_FALSE(fits(0, 0, 0, 0)) << "nothing";
  EXPECT_FALSE(fits(0, 0, 8, 4)) << "a flag is a word";
  EXPECT_FALSE(fits(0, 0, 8, kBytes));
  EXPECT_FALSE(fits(0, 0, kHuge, 0));
  EXPECT_FALSE(memory.region.fits_get(put_of(0, {}, 0))) << "without its payload";
}

TEST(Region, WritesAndRaisesAndCounts) {
  Memory memory;
  const std::uint64_t value = 42;
  const auto payload = std::as_bytes(std::span(&value, 1));
  wire::Parsed packet = put_of(8, payload);
  packet.header.value = 3;  // packets that follow
  memory.region.write(packet);
  EXPECT_EQ(memory.words[1], 42U);
  EXPECT_EQ(memory.region.arrived().following, 3U);
  memory.region.write(put_of(20, payload.first(4), 0));
  std::uint32_t part = 0;
  std::memcpy(&part, memory.region.at(20), sizeof part);
  EXPECT_EQ(part, 42U);
  EXPECT_EQ(memory.region.arrived().packets, 2);
  EXPECT_EQ(memory.region.arrived().following, 0U);

  memory.region.raise(32, 7);
  EXPECT_EQ(memory.words[4], 7U);
  memory.region.raise(32 + wire::kForward, 6);
  EXPECT_EQ(memory.words[4], 7U) << "a counter does not go back";
  memory.region.raise(32, 6);
  EXPECT_EQ(memory.words[4], 6U);
  EXPECT_EQ(memory.region.arrived().messages, 3);
}

TEST(Region, NamesPlacesByTheirOffsets) {
  Memory memory;
  EXPECT_EQ(memory.region.offset_of(&memory.words[2], 8), 16U);
  const transport::Put message{.flag = &memory.words[3], .forward = true};
  EXPECT_EQ(memory.region.flag_of(message), 24 + wire::kForward);
  EXPECT_DEATH(memory.region.offset_of(&memory.words[7], 9), "outside the region");
}

}  // namespace
}  // namespace unisono::reliable::region_test
