// SPDX-License-Identifier: BSD-3-Clause
// The bytes of streams: frames, handshakes and tags are read back, and nothing that was changed or
// made without the key passes.
#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/prng.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/incoming_stream.hpp"
#include "transport/tcp/tags/aegis.hpp"
#include "transport/tcp/tags/libcrypto.hpp"
#include "transport/tcp/tags/libipsec_mb.hpp"
#include "transport/tcp/tags/payload_tag.hpp"

namespace unisono::transport::tcp_frame_test {
namespace {

constexpr std::uint64_t kRegion = 1 << 20;
const wire::Key kKey = wire::key_of("test");

StreamFrame some_frame() {
  StreamFrame frame{.place = 4096, .bytes = 1000, .forward = true, .flag = 64, .value = 77};
  for (std::size_t i = 0; i < frame.payload.size(); ++i) {
    frame.payload[i] = static_cast<std::byte>(i * 3);
  }
  return frame;
}

TEST(StreamFrame, IsReadBack) {
  const StreamFrame frame = some_frame();
  const auto again = decode_frame(encode_frame(frame, kKey, 5), kKey, 5, kRegion);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again, frame);
}

TEST(StreamFrame, PassesInItsPlaceOnlyAndUnchanged) {
  const FrameHeader header = encode_frame(some_frame(), kKey, 5);
  EXPECT_FALSE(decode_frame(header, kKey, 6, kRegion).has_value());
  EXPECT_FALSE(decode_frame(header, wire::key_of("other"), 5, kRegion).has_value());
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    FrameHeader changed = header;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_frame(changed, kKey, 5, kRegion).has_value()) << bit;
  }
}

TEST(StreamFrame, HasToLieInTheRegion) {
  const auto passes = [](const StreamFrame& frame) {
    return decode_frame(encode_frame(frame, kKey, 0), kKey, 0, kRegion).has_value();
  };
  EXPECT_TRUE(passes({.place = kRegion - 8, .bytes = 8, .flag = kRegion - 8}));
  EXPECT_TRUE(passes({.place = kRegion, .bytes = 0}));
  EXPECT_FALSE(passes({.place = kRegion - 7, .bytes = 8}));
  EXPECT_FALSE(passes({.place = ~std::uint64_t{0} - 3, .bytes = 8}));
  EXPECT_FALSE(passes({.place = 0, .bytes = kMostFrameBytes + 1}));
  EXPECT_FALSE(passes({.flag = kRegion - 7}));
  EXPECT_FALSE(passes({.flag = kRegion}));
  EXPECT_FALSE(passes({.flag = 4}));  // no word begins there
  EXPECT_FALSE(passes({.forward = true}));
}

TEST(StreamHandshake, BothSidesComeToTheSameKeys) {
  ASSERT_TRUE(prepare_handshakes().ok());
  const HelloBytes hello =
      encode_hello({.from = 3, .to = 1, .tags = TagKind::gmac, .nonce = random_nonce()}, kKey);
  const auto read = decode_hello(hello, kKey);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->from, 3U);
  EXPECT_EQ(read->to, 1U);
  EXPECT_EQ(read->tags, TagKind::gmac);
  const StreamChallenge challenge{.nonce = random_nonce(), .tags = TagKind::gmac};
  const auto told = decode_challenge(encode_challenge(challenge, hello, kKey), hello, kKey);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(*told, challenge);
  const StreamSession one = make_session(hello, challenge, kKey);
  const StreamSession other = make_session(hello, *told, kKey);
  EXPECT_EQ(one.answer, other.answer);
  EXPECT_EQ(one.payload_key, other.payload_key);
  EXPECT_EQ(one.header_key.low, other.header_key.low);
  const StreamSession next =
      make_session(hello, {.nonce = random_nonce(), .tags = TagKind::gmac}, kKey);
  EXPECT_NE(one.answer, next.answer);
  EXPECT_NE(one.payload_key, next.payload_key);
  const StreamSession of_other_tags = make_session(hello, {.nonce = challenge.nonce}, kKey);
  EXPECT_NE(one.answer, of_other_tags.answer);
  EXPECT_NE(one.payload_key, of_other_tags.payload_key);
}

TEST(StreamHandshake, NothingPassesThatWasChangedOrMadeWithoutTheKey) {
  ASSERT_TRUE(prepare_handshakes().ok());
  const wire::Key other = wire::key_of("other");
  const HelloBytes hello = encode_hello({.from = 3, .to = 1, .nonce = random_nonce()}, kKey);
  EXPECT_FALSE(decode_hello(hello, other).has_value());
  for (std::size_t bit = 0; bit < 8 * hello.size(); ++bit) {
    HelloBytes changed = hello;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_hello(changed, kKey).has_value()) << bit;
  }
  const ChallengeBytes challenge = encode_challenge({.nonce = random_nonce()}, hello, kKey);
  EXPECT_FALSE(decode_challenge(challenge, hello, other).has_value());
  const HelloBytes later = encode_hello({.from = 3, .to = 1, .nonce = random_nonce()}, kKey);
  EXPECT_FALSE(decode_challenge(challenge, later, kKey).has_value());
  for (std::size_t bit = 0; bit < 8 * challenge.size(); ++bit) {
    ChallengeBytes changed = challenge;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_challenge(changed, hello, kKey).has_value()) << bit;
  }
}

// A rank of a newer version has the key too.
TEST(StreamHandshake, UnknownTagsDoNotPass) {
  ASSERT_TRUE(prepare_handshakes().ok());
  const auto unknown = static_cast<TagKind>(5);
  const HelloBytes odd = encode_hello({.from = 3, .to = 1, .tags = unknown}, kKey);
  EXPECT_FALSE(decode_hello(odd, kKey).has_value());
  const HelloBytes hello = encode_hello({.from = 3, .to = 1}, kKey);
  const ChallengeBytes challenge = encode_challenge({.tags = unknown}, hello, kKey);
  EXPECT_FALSE(decode_challenge(challenge, hello, kKey).has_value());
}

// The listening rank's answer to a Hello that names these tags, if it prefers others.
std::optional<TagKind> agreed_tags(TagKind connecting, TagKind listening) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return std::nullopt;
  const base::Descriptor connected(ends[0]);
  const StreamIdentity identity{.key = kKey, .rank = 1, .ranks = 2, .tags = listening};
  IncomingStream stream(base::Descriptor(ends[1]), identity);
  const HelloBytes hello = encode_hello({.from = 0, .to = 1, .tags = connecting}, kKey);
  ChallengeBytes challenge{};
  if (send(connected.get(), hello.data(), hello.size(), 0) != static_cast<ssize_t>(hello.size()) ||
      stream.read() != IncomingStream::State::greeting ||
      recv(connected.get(), challenge.data(), challenge.size(), 0) !=
          static_cast<ssize_t>(challenge.size())) {
    return std::nullopt;
  }
  const auto told = decode_challenge(challenge, hello, kKey);
  if (!told) return std::nullopt;
  return told->tags;
}

TEST(StreamTags, AreAnotherKindOnlyWhereBothComputeIt) {
  ASSERT_TRUE(prepare_handshakes().ok());
  constexpr TagKind kGmac = TagKind::gmac;
  constexpr TagKind kPoly = TagKind::poly1305;
  EXPECT_EQ(agreed_tags(kPoly, kPoly), kPoly);
  EXPECT_EQ(agreed_tags(kGmac, kPoly), kPoly);
  EXPECT_EQ(agreed_tags(kPoly, kGmac), kPoly);
  EXPECT_EQ(agreed_tags(TagKind::none, kPoly), kPoly);
  EXPECT_EQ(agreed_tags(kGmac, TagKind::none), kPoly);
  EXPECT_EQ(agreed_tags(TagKind::none, TagKind::none), TagKind::none);
  EXPECT_EQ(agreed_tags(TagKind::aegis, kPoly), kPoly);
  EXPECT_EQ(agreed_tags(kPoly, TagKind::aegis), kPoly);
  EXPECT_EQ(agreed_tags(TagKind::none, TagKind::aegis), kPoly);
  EXPECT_EQ(agreed_tags(TagKind::aegis_x2, kPoly), kPoly);
  EXPECT_EQ(agreed_tags(kPoly, TagKind::aegis_x2), kPoly);
  if (Aegis::is_supported(Aegis::Width::one_block)) {
    EXPECT_EQ(agreed_tags(TagKind::aegis, TagKind::aegis), TagKind::aegis);
    EXPECT_EQ(agreed_tags(kGmac, TagKind::aegis), TagKind::aegis);
    EXPECT_EQ(agreed_tags(TagKind::aegis, kGmac), TagKind::aegis);
    EXPECT_EQ(agreed_tags(TagKind::aegis, TagKind::aegis_x2), TagKind::aegis);
    EXPECT_EQ(agreed_tags(TagKind::aegis_x2, TagKind::aegis), TagKind::aegis);
  }
  if (Aegis::is_supported(Aegis::Width::two_blocks)) {
    EXPECT_EQ(agreed_tags(TagKind::aegis_x2, TagKind::aegis_x2), TagKind::aegis_x2);
    EXPECT_EQ(agreed_tags(kGmac, TagKind::aegis_x2), TagKind::aegis_x2);
    EXPECT_EQ(agreed_tags(TagKind::aegis_x2, kGmac), TagKind::aegis_x2);
  }
  if (fastest_tags() != kGmac) GTEST_SKIP() << "GMAC is not fast here";
  EXPECT_EQ(agreed_tags(kGmac, kGmac), kGmac);
}

TEST(StreamHandshake, ForeignBytesAreNoticedAtTheFirst) {
  const HelloBytes hello = encode_hello({.from = 0, .to = 1}, kKey);
  for (std::size_t count = 0; count <= hello.size(); ++count) {
    EXPECT_TRUE(may_be_hello(std::span(hello).first(count))) << count;
  }
  const std::string text = "GET / HTTP/1.1";
  EXPECT_FALSE(may_be_hello(std::as_bytes(std::span(text)).first(1)));
}

class PayloadTags : public testing::TestWithParam<PayloadTagger::Library> {
 protected:
  void SetUp() override {
    if (!can_tag(GetParam())) GTEST_SKIP() << library_name(GetParam()) << " cannot compute it here";
  }
};

// The tag of an empty message is the second half of its key (RFC 8439, section 2.5.1).
TEST_P(PayloadTags, ArePoly1305UnderAKeyOfTheFrame) {
  if (kind_of(GetParam()) != TagKind::poly1305) GTEST_SKIP() << "it computes another";
  const auto tagger = make_payload_tagger(GetParam(), PayloadKey{});
  ASSERT_NE(tagger, nullptr);
  const PayloadKey zeros{};
  const std::array<unsigned char, 8> number = {5};
  std::array<unsigned char, 32> key;
  crypto_generichash(key.data(), key.size(), number.data(), number.size(),
                     reinterpret_cast<const unsigned char*>(zeros.data()), zeros.size());
  const PayloadTag tag = tagger->tag(5, {});
  EXPECT_TRUE(are_equal(tag, std::as_bytes(std::span(key).last<16>())));
}

// RFC 8439, section 2.5.2.
TEST(Libcrypto, ComputesTheTagOfTheStandard) {
  if (libcrypto() == nullptr) GTEST_SKIP() << "libcrypto is not here";
  const auto poly1305 = libcrypto()->new_poly1305();
  ASSERT_NE(poly1305, nullptr);
  constexpr std::array<unsigned char, 32> kStandardKey = {
      0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33, 0x7f, 0x44, 0x52,
      0xfe, 0x42, 0xd5, 0x06, 0xa8, 0x01, 0x03, 0x80, 0x8a, 0xfb, 0x0d,
      0xb2, 0xfd, 0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b};
  const std::string text = "Cryptographic Forum Research Group";
  const PayloadTag tag = poly1305->tag(kStandardKey, std::as_bytes(std::span(text)));
  char hex[33];
  sodium_bin2hex(hex, sizeof hex, reinterpret_cast<const unsigned char*>(tag.data()), tag.size());
  EXPECT_STREQ(hex, "a8061dc1305136c6c22b8baf0c0127a9");
}

// Test case 1 of McGrew and Viega, The Galois/Counter Mode of Operation: the tag of nothing.
TEST(LibipsecMb, ComputesTheTagOfTheStandard) {
  if (libipsec_mb() == nullptr) GTEST_SKIP() << "libipsec-mb is not here, or not fast";
  const auto gmac = libipsec_mb()->new_gmac(std::array<std::byte, 16>{});
  ASSERT_NE(gmac, nullptr);
  const PayloadTag tag = gmac->tag(0, {});
  char hex[33];
  sodium_bin2hex(hex, sizeof hex, reinterpret_cast<const unsigned char*>(tag.data()), tag.size());
  EXPECT_STREQ(hex, "58e2fccefa7e3061367f1d57a4e7455a");
}

std::string aegis_hex(Aegis::Width width, const std::array<std::byte, 16>& key,
                      std::uint64_t number, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 250);
  const PayloadTag tag = Aegis(width, key).tag(number, bytes);
  char hex[33];
  sodium_bin2hex(hex, sizeof hex, reinterpret_cast<const unsigned char*>(tag.data()), tag.size());
  return hex;
}

// Test vector 2 of draft-irtf-cfrg-aegis-aead for AEGIS-128L: the tag of nothing.
TEST(AegisTag, IsThatOfTheStandard) {
  constexpr auto kWidth = Aegis::Width::one_block;
  if (!Aegis::is_supported(kWidth)) GTEST_SKIP() << "the processor has no AES instructions";
  EXPECT_EQ(aegis_hex(kWidth, {std::byte{0x10}, std::byte{0x01}}, 0x20010, 0),
            "c2b879a67def9d74e6c14f708bbcc9b4");
}

// The tags are those of libaegis, by pyaegis 0.3.1.
struct LengthTag {
  std::size_t bytes;
  const char* one_block;
  const char* two_blocks;
};
constexpr std::array kLengthTags = {
    LengthTag{0, "ed08207c229b118c88e4135102ae96dc", "e437e444563a225cd4860db629678aeb"},
    LengthTag{8, "c708dfd656772fed7391c0f1e162a944", "625c00ab2656379e58a1950fa58fbb29"},
    LengthTag{31, "510df908e59c6056640226a73ee1e86d", "385b7a2346a00da0287de69c5d95b452"},
    LengthTag{32, "a60da748990e1e6a73e888ec10c7336e", "16ef9d0c9b7c6023dfe2d26452cb63e8"},
    LengthTag{33, "9cba1a4a19fc387f64bd05d19a9d3889", "2444e504097111918022c15090638b1a"},
    LengthTag{63, "d97423dead7e86bc0ad09658b7e42eb2", "96bf2d82b9bc247ec2257bf4e00dbc29"},
    LengthTag{64, "fa85be0636e6eba6d8a05f747fd40c88", "a10afe13bcf9c63fd70c3d809df0a00e"},
    LengthTag{65, "5c8a21fe588440c9df3c05b74201fae5", "5e76f6189b9cc574927a4c4d38b3ea8c"},
    LengthTag{1000, "2ab5ae4b538f0e299f568a8fec65c237", "c6f34cba0ac53fc9114185f2a00f1d6f"},
};

class AegisTags : public testing::TestWithParam<Aegis::Width> {};

TEST_P(AegisTags, CoverEachLength) {
  if (!Aegis::is_supported(GetParam())) GTEST_SKIP() << "the processor lacks the instructions";
  std::array<std::byte, 16> key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  for (const LengthTag& each : kLengthTags) {
    EXPECT_EQ(aegis_hex(GetParam(), key, 5, each.bytes),
              GetParam() == Aegis::Width::one_block ? each.one_block : each.two_blocks)
        << each.bytes << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, AegisTags,
                         testing::Values(Aegis::Width::one_block, Aegis::Width::two_blocks),
                         [](const auto& each) {
                           return each.param == Aegis::Width::one_block ? "one" : "two";
                         });

TEST_P(PayloadTags, DifferIfAnythingDoes) {
  const auto tagger = make_payload_tagger(GetParam(), PayloadKey{});
  PayloadKey second_key{};
  second_key[0] = std::byte{1};
  const auto second = make_payload_tagger(GetParam(), second_key);
  std::vector<std::byte> bytes(5000, std::byte{7});
  const PayloadTag tag = tagger->tag(1, bytes);
  EXPECT_EQ(tagger->tag(1, bytes), tag);
  EXPECT_NE(tagger->tag(2, bytes), tag);
  EXPECT_NE(second->tag(1, bytes), tag);
  bytes.back() = std::byte{8};
  EXPECT_NE(tagger->tag(1, bytes), tag);
}

INSTANTIATE_TEST_SUITE_P(Libraries, PayloadTags,
                         testing::Values(PayloadTagger::Library::ipsec_mb,
                                         PayloadTagger::Library::own_wide,
                                         PayloadTagger::Library::own,
                                         PayloadTagger::Library::crypto,
                                         PayloadTagger::Library::sodium),
                         [](const auto& each) {
                           std::string name(library_name(each.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(Libcrypto, ItsTaggersAreUsedIfItIsThere) {
  EXPECT_EQ(can_tag(PayloadTagger::Library::crypto), libcrypto() != nullptr);
  const bool is_there = libcrypto() != nullptr;
  const auto chosen = PayloadTagger::choose(TagKind::poly1305);
  EXPECT_EQ(chosen == PayloadTagger::Library::crypto, is_there);
}

TEST(LibipsecMb, ItsTagsArePreferredIfItIsThere) {
  const bool is_there = libipsec_mb() != nullptr;
  EXPECT_EQ(can_tag(PayloadTagger::Library::ipsec_mb), is_there);
  EXPECT_EQ(fastest_tags() == TagKind::gmac, is_there);
  EXPECT_EQ(kind_of(PayloadTagger::choose(fastest_tags())), fastest_tags());
}

TEST(AegisTag, IsPreferredWhereGmacIsNotFast) {
  const bool takes_two_blocks = Aegis::is_supported(Aegis::Width::two_blocks);
  EXPECT_EQ(fastest_tags() == TagKind::aegis_x2, libipsec_mb() == nullptr && takes_two_blocks);
  EXPECT_EQ(fastest_tags() == TagKind::aegis, libipsec_mb() == nullptr && !takes_two_blocks &&
                                                  Aegis::is_supported(Aegis::Width::one_block));
  EXPECT_EQ(kind_of(PayloadTagger::choose(TagKind::aegis)), TagKind::aegis);
}

// So hosts with different libraries understand each other.
TEST(PayloadTag, BothLibrariesComputeTheSame) {
  using Library = PayloadTagger::Library;
  if (!can_tag(Library::crypto) || !can_tag(Library::sodium)) {
    GTEST_SKIP() << "only one of the libraries can compute it here";
  }
  base::Prng prng(3);
  PayloadKey key;
  for (auto& byte : key) byte = static_cast<std::byte>(prng.next());
  const auto crypto = make_payload_tagger(Library::crypto, key);
  const auto sodium = make_payload_tagger(Library::sodium, key);
  for (const std::size_t count : {1UL, 15UL, 16UL, 17UL, 1000UL, 131'072UL}) {
    std::vector<std::byte> bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
    EXPECT_EQ(crypto->tag(count, bytes), sodium->tag(count, bytes)) << count;
  }
}

}  // namespace
}  // namespace unisono::transport::tcp_frame_test
