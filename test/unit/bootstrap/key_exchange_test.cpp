// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/kvs/key_exchange: which ranks can open a sealed key, and which cannot.
#include "bootstrap/kvs/key_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace unisono::bootstrap::key_exchange_test {
namespace {

using base::Code;

void expect_closed(const base::Result<JobSecret>& opened) {
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::state);
}

TEST(KeyExchange, TheRankForWhichItIsSealedOpensIt) {
  const auto rank0 = *EphemeralKeys::make();
  const auto rank1 = *EphemeralKeys::make();
  const auto secret = *JobSecret::random();
  const auto sealed = rank0.seal(secret, rank1.public_key());
  ASSERT_TRUE(sealed.ok());
  const auto opened = rank1.open(*sealed, rank0.public_key());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(*opened, secret);
  EXPECT_EQ(opened->key_text(), secret.key_text());
}

TEST(KeyExchange, NobodyElseDoes) {
  const auto rank0 = *EphemeralKeys::make();
  const auto rank1 = *EphemeralKeys::make();
  const auto other = *EphemeralKeys::make();
  const auto sealed = *rank0.seal(*JobSecret::random(), rank1.public_key());
  expect_closed(other.open(sealed, rank0.public_key()));
  expect_closed(rank1.open(sealed, other.public_key()));
  expect_closed(rank0.open(sealed, rank1.public_key()));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    SealedSecret changed = sealed;
    changed[i] ^= 1;
    expect_closed(rank1.open(changed, rank0.public_key()));
  }
}

// With such a key everybody would know the common secret.
TEST(KeyExchange, APublicKeyOfLowOrderIsRefused) {
  const auto keys = *EphemeralKeys::make();
  PublicKey one{};
  one[0] = 1;
  for (const PublicKey& weak : {PublicKey{}, one}) {
    const auto sealed = keys.seal(*JobSecret::random(), weak);
    ASSERT_FALSE(sealed.ok());
    EXPECT_EQ(sealed.error().code, Code::state);
    expect_closed(keys.open(SealedSecret{}, weak));
  }
}

TEST(KeyExchange, SecretsAndPairsAreNewEachTime) {
  EXPECT_NE(JobSecret::random()->key_text(), JobSecret::random()->key_text());
  EXPECT_NE(EphemeralKeys::make()->public_key(), EphemeralKeys::make()->public_key());
}

TEST(KeyExchange, ATextIsOverwritten) {
  std::string text = JobSecret::random()->key_text();
  EXPECT_EQ(text.size(), 32U);
  wipe(text);
  EXPECT_EQ(text, std::string(32, '\0'));
}

}  // namespace
}  // namespace unisono::bootstrap::key_exchange_test
