// SPDX-License-Identifier: BSD-3-Clause
// The digest is the same with every instruction set, and every bit of a payload counts.
#include "wire/payload_digest.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/prng.hpp"
#include "base/simd/instruction_set.hpp"

namespace unisono::wire::payload_digest_test {
namespace {

constexpr Key kKey{0x1122334455667788, 0x99aabbccddeeff00};

std::vector<std::byte> random_bytes(std::size_t size) {
  base::Prng prng(size + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next());
  return bytes;
}

TEST(PayloadDigest, IsTheSameOnEveryInstructionSetAndWhereverThePayloadLies) {
  const std::vector<std::byte> bytes = random_bytes(1500);
  for (std::size_t length = 0; length <= bytes.size() - 7; length += length < 200 ? 1 : 97) {
    const auto payload = std::span(bytes).subspan(length % 7, length);
    const PayloadDigest expected = payload_digest_by_words(kKey, payload);
    for (const base::InstructionSet set : base::supported_instruction_sets()) {
      const base::NarrowedInstructionSet narrowed(set);
      EXPECT_EQ(payload_digest(kKey, payload), expected)
          << length << " bytes, instruction set " << static_cast<int>(set);
    }
  }
}

// SipHash-2-4 of each lane's mark and words, spelled out for one payload.
TEST(PayloadDigest, ALaneIsSiphashOfItsMarkAndItsWords) {
  const std::vector<std::byte> payload = random_bytes(2 * kLanes * 8 - 3);
  const PayloadDigest digest = payload_digest(kKey, payload);
  std::vector<std::byte> padded = payload;
  padded.resize(2 * kLanes * 8);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    unisono_siphash_state state = unisono_siphash_start(&kKey);
    unisono_siphash_word(&state, kLaneMark + lane);
    for (std::size_t block = 0; block < 2; ++block) {
      const std::byte* const word = padded.data() + (block * kLanes + lane) * 8;
      unisono_siphash_word(&state, unisono_load_word(reinterpret_cast<const unsigned char*>(word)));
    }
    EXPECT_EQ(digest[lane], unisono_siphash_result(&state)) << lane;
  }
}

TEST(PayloadDigest, EveryBitAndTheKeyCount) {
  std::vector<std::byte> payload = random_bytes(300);
  const PayloadDigest digest = payload_digest(kKey, payload);
  EXPECT_NE(payload_digest({kKey.low, kKey.high ^ 1}, payload), digest);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      payload[i] ^= std::byte{1} << bit;
      EXPECT_NE(payload_digest(kKey, payload), digest) << i << " " << bit;
      payload[i] ^= std::byte{1} << bit;
    }
  }
}

}  // namespace
}  // namespace unisono::wire::payload_digest_test
