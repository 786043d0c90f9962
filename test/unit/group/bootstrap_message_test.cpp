// SPDX-License-Identifier: BSD-3-Clause
// group/bootstrap: the wire form of the messages, their tags, and what is rejected.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "base/settings.hpp"
#include "group/bootstrap/address.hpp"
#include "group/bootstrap/message.hpp"
#include "wire/key.hpp"

namespace unisono::group {
namespace {

Nonce nonce_of(char letter) {
  Nonce nonce{};
  nonce.fill(letter);
  return nonce;
}

Hello some_hello() { return {nonce_of('n'), nonce_of('b'), 2, 5, 1 << 20}; }

std::vector<Message> one_of_each() {
  return {Challenge{nonce_of('c')}, some_hello(), Welcome{1 << 20, "job", {11, 12, 13}},
          Refused{base::Code::timeout, "missing rank 1"}, Redirect{"name", nonce_of('b')}};
}

TEST(BootstrapMessage, RoundTrip) {
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    const auto decoded = decode(frame + "behind");
    ASSERT_TRUE(decoded.ok());
    ASSERT_TRUE(decoded->has_value());
    EXPECT_EQ((*decoded)->message, message);
    EXPECT_EQ((*decoded)->frame_bytes, frame.size());
  }
}

TEST(BootstrapMessage, WireFormIsFixedAndLittleEndian) {
  const std::string frame = encode(Refused{base::Code::timeout, "ab"});
  const std::string expected("UNIS\x01\0\x04\0\x0a\0\0\0\x06\0\0\0\x02\0\0\0ab", 22);
  EXPECT_EQ(frame, expected);
  EXPECT_EQ(encode(some_hello()).size(), kHelloFrameBytes);
}

TEST(BootstrapMessage, APartAsksForMore) {
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const auto decoded = decode(std::string_view(frame).substr(0, length));
      ASSERT_TRUE(decoded.ok()) << length;
      ASSERT_FALSE(decoded->has_value()) << length;
    }
  }
}

TEST(BootstrapMessage, RejectsWhatNoPeerSends) {
  const std::string frame = encode(some_hello());
  const auto with = [&frame](std::size_t position, char byte) {
    std::string changed = frame;
    changed[position] = byte;
    return changed;
  };
  EXPECT_FALSE(decode(with(0, 'X')).ok());    // magic
  EXPECT_FALSE(decode(with(4, 9)).ok());      // version
  EXPECT_FALSE(decode(with(6, 77)).ok());     // type
  EXPECT_FALSE(decode(with(8, 1)).ok());      // length
  EXPECT_FALSE(decode(with(11, 0x7f)).ok());  // length, enormous: not waited for
  EXPECT_FALSE(decode(with(44, 5)).ok());     // rank 5 of 5
  EXPECT_FALSE(decode(with(51, 1)).ok());     // more ranks than possible
  EXPECT_FALSE(decode(with(59, 1)).ok());     // more memory than possible
  EXPECT_FALSE(decode("GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok());
  EXPECT_FALSE(decode(encode(Welcome{1 << 20, "job", {0}})).ok());
  EXPECT_FALSE(decode(encode(Welcome{1 << 20, "job", {}})).ok());
  EXPECT_FALSE(decode(encode(Welcome{0, "job", {1}})).ok());
  EXPECT_FALSE(decode(encode(Refused{base::Code::ok, "fine"})).ok());
  EXPECT_FALSE(decode(encode(Redirect{"", nonce_of('b')})).ok());
}

TEST(BootstrapMessage, AnotherVersionIsNamed) {
  std::string frame = encode(Challenge{});
  frame[4] = 9;
  const auto decoded = decode(frame);
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message.find("version 9"), std::string::npos);
}

TEST(BootstrapMessage, AWelcomeWhoseCountLiesIsRejected) {
  std::string frame = encode(Welcome{1 << 20, "job", {11, 12, 13}});
  const std::size_t count_at = 12 + 8 + 4 + 3;
  ASSERT_EQ(frame[count_at], 3);
  for (const char count : {'\0', '\2', '\4', '\177'}) {
    frame[count_at] = count;
    EXPECT_FALSE(decode(frame).ok()) << static_cast<int>(count);
  }
}

TEST(BootstrapMessage, TextForPeopleIsCutAndMadeHarmless) {
  const auto decoded =
      decode(encode(Refused{base::Code::state, "a\x1b[31m\n" + std::string(10000, 'x')}));
  ASSERT_TRUE(decoded.ok() && decoded->has_value());
  const auto& refused = std::get<Refused>((*decoded)->message);
  EXPECT_EQ(refused.text.size(), kMostTextBytes);
  EXPECT_EQ(refused.text.substr(0, 8), "a [31m x");
}

TEST(BootstrapMessage, RandomBytesBehindAGoodHeaderDoNoHarm) {
  base::Prng prng(11);
  int accepted = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    std::string frame = encode(one_of_each()[prng.below(5)]);
    for (std::uint64_t changes = prng.below(4) + 1; changes > 0; --changes) {
      frame[12 + prng.below(frame.size() - 12)] = static_cast<char>(prng.next());
    }
    const auto decoded = decode(frame);
    if (decoded.ok() && decoded->has_value()) {
      ++accepted;
      EXPECT_LE((*decoded)->frame_bytes, frame.size());
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(BootstrapMessage, TagNeedsKeyNonceAndEveryByte) {
  const wire::Key key = wire::key_of("a secret of some length");
  std::string frame = encode(some_hello());
  sign(frame, key, nonce_of('s'));
  EXPECT_TRUE(signature_is_right(frame, key, nonce_of('s')));
  EXPECT_FALSE(signature_is_right(frame, key, nonce_of('t')));
  EXPECT_FALSE(signature_is_right(frame, wire::key_of("a secret of some lengtH"), nonce_of('s')));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    std::string changed = frame;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_FALSE(signature_is_right(changed, key, nonce_of('s'))) << i;
  }
  EXPECT_FALSE(signature_is_right("short", key, nonce_of('s')));
}

TEST(BootstrapMessage, LimitsAreThoseOfTheSettings) {
  EXPECT_EQ(kMostRanks, static_cast<std::uint32_t>(base::setting_row(base::Setting::size).maximum));
  EXPECT_EQ(kMostMemoryBytes,
            static_cast<std::uint64_t>(base::setting_row(base::Setting::shared_limit).maximum));
}

TEST(BootstrapAddress, FormsAreReadAndWritten) {
  for (const char* text : {"unix:@some-name", "tcp:127.0.0.1:4242", "tcp:[::1]:80", "tcp:host:0"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address_text(*address), text);
  }
  for (const std::string& text :
       {std::string(), std::string("unix:@"), std::string("unix:/tmp/x"), std::string("tcp:1"),
        std::string("tcp::1"), std::string("tcp:h:"), std::string("tcp:h:65536"),
        std::string("tcp:h:1x"), std::string("tcp:[]:1"), "unix:@" + std::string(108, 'x')}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, base::Code::argument);
    EXPECT_NE(address.error().message.find("unix:@NAME"), std::string::npos);
  }
}

TEST(BootstrapAddress, RandomThingsDiffer) {
  EXPECT_NE(address_text(*random_unix_address()), address_text(*random_unix_address()));
  EXPECT_NE(*random_nonce(), *random_nonce());
  EXPECT_NE(*random_job_key(), *random_job_key());
  EXPECT_EQ(random_job_key()->size(), 32U);
  EXPECT_EQ(*own_boot_id(), *own_boot_id());
}

}  // namespace
}  // namespace unisono::group
