// SPDX-License-Identifier: BSD-3-Clause
// The keyed hash against the published vectors, and the tag of a packet against the hash of the
// packet's bytes.
#include "wire/siphash.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/prng.hpp"
#include "wire/key.hpp"

namespace unisono::wire::siphash_test {
namespace {

// vectors_sip64 of the reference implementation (the first also in the paper's appendix): key
// 00 01 .. 0f, message 00 01 .. (length - 1).
// clang-format off
constexpr std::array<std::uint64_t, 64> kVectors{
    0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
    0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
    0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
    0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
    0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
    0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
    0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad,
    0xde4daaaca71dc9a5, 0xa6a2506687956571, 0xad87a3535c49ef28, 0x32d892fad841c342,
    0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
    0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
    0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95,
    0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
    0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a,
    0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea, 0x245731c13ca42499,
    0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
    0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
};
// clang-format on
constexpr Key kVectorKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(Siphash, AllOfficialVectors) {
  std::array<unsigned char, 64> message{};
  for (std::size_t length = 0; length < kVectors.size(); ++length) {
    EXPECT_EQ(unisono_siphash(&kVectorKey, message.data(), length), kVectors[length]) << length;
    message[length] = static_cast<unsigned char>(length);
  }
}

// A program in the kernel feeds words; the result is the same.
TEST(Siphash, WordByWordIsTheSame) {
  unisono_siphash_state state = unisono_siphash_start(&kVectorKey);
  unisono_siphash_word(&state, 0x0706050403020100);
  EXPECT_EQ(unisono_siphash_end(&state, 0x0e0d0c0b0a0908, 15), kVectors[15]);
}

TEST(Siphash, TheTagIsTheHashOfThePacketWithoutIt) {
  base::Prng prng(3);
  for (std::uint16_t length = 0; length <= 70; ++length) {
    unisono_packet packet{};
    std::array<std::uint64_t, UNISONO_PACKET_BYTES / 8> words{};
    for (auto& word : words) word = prng.next();
    std::memcpy(&packet, words.data(), sizeof(packet));
    packet.length = length;
    std::vector<unsigned char> payload(length);
    for (auto& byte : payload) byte = static_cast<unsigned char>(prng.next());

    unisono_packet on_wire = packet;
    unisono_packet_swap(&on_wire);
    std::vector<unsigned char> bytes(UNISONO_PACKET_BYTES - 8);
    std::memcpy(bytes.data(), &on_wire, bytes.size());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    EXPECT_EQ(unisono_packet_tag(&kVectorKey, &packet, payload.data()),
              unisono_siphash(&kVectorKey, bytes.data(), bytes.size()))
        << length;
  }
}

TEST(Siphash, TagsAreEqualOrNot) {
  EXPECT_EQ(unisono_tag_equal(5, 5), 1);
  EXPECT_EQ(unisono_tag_equal(0, 0), 1);
  EXPECT_EQ(unisono_tag_equal(~0ULL, ~0ULL), 1);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(unisono_tag_equal(0x123456789abcdef0, 0x123456789abcdef0 ^ (1ULL << bit)), 0) << bit;
  }
  EXPECT_EQ(unisono_tag_equal(0, ~0ULL), 0);
}

TEST(Key, RandomKeysDifferAndJobsFollowFromKeys) {
  const auto one = random_key();
  const auto other = random_key();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_FALSE(one->low == other->low && one->high == other->high);
  EXPECT_NE(one->low, one->high);
  EXPECT_EQ(job_of(*one), job_of(*one));
  EXPECT_NE(job_of({1, 2}), job_of({1, 3}));
  EXPECT_NE(job_of({1, 2}), job_of({0, 2}));
}

TEST(Key, ASecretTextStandsForAKey) {
  const Key key = key_of("a secret of some length");
  const Key same = key_of("a secret of some length");
  const Key other = key_of("a secret of some lengtH");
  EXPECT_TRUE(key.low == same.low && key.high == same.high);
  EXPECT_NE(key.low, other.low);
  EXPECT_NE(key.high, other.high);
  EXPECT_NE(key.low, key.high);
}

}  // namespace
}  // namespace unisono::wire::siphash_test
