// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "transport/tcp/little_endian.hpp"

namespace unisono::transport {
namespace {

constexpr std::uint32_t kMagic = 0x54494e55;  // "UNIT"
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kFixedBytes = 24;  // of a Hello: magic, version, job, from, to, tags
constexpr std::size_t kProof = kHelloBytes - sizeof(StreamProof);

template <std::size_t kBytes>
std::array<std::byte, kBytes> keyed_hash(std::string_view purpose,
                                         std::initializer_list<std::span<const std::byte>> parts,
                                         const wire::Key& key) {
  std::array<std::byte, 16> secret;
  store_little_endian(secret.data(), std::uint64_t{key.low});
  store_little_endian(secret.data() + 8, std::uint64_t{key.high});
  crypto_generichash_state state;
  crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(secret.data()),
                          secret.size(), kBytes);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(purpose.data()),
                            purpose.size());
  for (const auto part : parts) {
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                              part.size());
  }
  std::array<std::byte, kBytes> result;
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(result.data()), kBytes);
  sodium_memzero(secret.data(), secret.size());
  return result;
}

bool are_known_tags(std::uint32_t kind) {
  return kind <= static_cast<std::uint32_t>(TagKind::aegis_x2);
}

StreamProof hello_proof(std::span<const std::byte> fixed_and_nonce, const wire::Key& key) {
  return keyed_hash<sizeof(StreamProof)>("unisono stream hello", {fixed_and_nonce}, key);
}

// The bytes of a Challenge before its proof are the nonce and the tags.
constexpr std::size_t kToldBytes = kChallengeBytes - sizeof(StreamProof);
using ToldBytes = std::array<std::byte, kToldBytes>;

ToldBytes told_by(const StreamChallenge& challenge) {
  ToldBytes bytes{};
  std::ranges::copy(challenge.nonce, bytes.begin());
  store_little_endian(bytes.data() + challenge.nonce.size(),
                      static_cast<std::uint32_t>(challenge.tags));
  return bytes;
}

StreamProof challenge_proof(const HelloBytes& hello, std::span<const std::byte> told,
                            const wire::Key& key) {
  return keyed_hash<sizeof(StreamProof)>("unisono stream challenge", {hello, told}, key);
}

}  // namespace

base::Status prepare_handshakes() {
  if (sodium_init() >= 0) return base::success();
  return base::Error{base::Code::system,
                     "libsodium cannot be initialized: the system gives it no random numbers"};
}

StreamNonce random_nonce() {
  StreamNonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

HelloBytes encode_hello(const StreamHello& hello, const wire::Key& key) {
  HelloBytes bytes{};
  store_little_endian(bytes.data(), kMagic);
  store_little_endian(bytes.data() + 4, kVersion);
  store_little_endian(bytes.data() + 8, wire::job_of(key));
  store_little_endian(bytes.data() + 12, hello.from);
  store_little_endian(bytes.data() + 16, hello.to);
  store_little_endian(bytes.data() + 20, static_cast<std::uint32_t>(hello.tags));
  std::ranges::copy(hello.nonce, bytes.begin() + kFixedBytes);
  const StreamProof proof = hello_proof(std::span(bytes).first<kProof>(), key);
  std::ranges::copy(proof, bytes.begin() + kProof);
  return bytes;
}

std::optional<StreamHello> decode_hello(std::span<const std::byte, kHelloBytes> bytes,
                                        const wire::Key& key) {
  const auto number = [&](std::size_t at) {
    return load_little_endian<std::uint32_t>(bytes.data() + at);
  };
  if (!may_be_hello(bytes) || number(8) != wire::job_of(key) || !are_known_tags(number(20))) {
    return std::nullopt;
  }
  const StreamProof proof = hello_proof(bytes.first<kProof>(), key);
  if (!are_equal(proof, bytes.subspan<kProof>())) return std::nullopt;
  StreamHello hello{.from = number(12), .to = number(16), .tags = static_cast<TagKind>(number(20))};
  std::ranges::copy(bytes.subspan<kFixedBytes, sizeof(StreamNonce)>(), hello.nonce.begin());
  return hello;
}

bool may_be_hello(std::span<const std::byte> beginning) {
  std::array<std::byte, 8> expected;
  store_little_endian(expected.data(), kMagic);
  store_little_endian(expected.data() + 4, kVersion);
  const std::size_t known = std::min(beginning.size(), expected.size());
  return std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(known),
                    beginning.begin());
}

ChallengeBytes encode_challenge(const StreamChallenge& challenge, const HelloBytes& hello,
                                const wire::Key& key) {
  ChallengeBytes bytes;
  const ToldBytes told = told_by(challenge);
  std::ranges::copy(told, bytes.begin());
  std::ranges::copy(challenge_proof(hello, told, key), bytes.begin() + kToldBytes);
  return bytes;
}

std::optional<StreamChallenge> decode_challenge(std::span<const std::byte, kChallengeBytes> bytes,
                                                const HelloBytes& hello, const wire::Key& key) {
  const auto told = bytes.first<kToldBytes>();
  if (!are_equal(challenge_proof(hello, told, key), bytes.subspan<kToldBytes>())) {
    return std::nullopt;
  }
  StreamChallenge challenge;
  std::ranges::copy(told.first<sizeof(StreamNonce)>(), challenge.nonce.begin());
  const auto tags = load_little_endian<std::uint32_t>(told.data() + sizeof(StreamNonce));
  if (!are_known_tags(tags)) return std::nullopt;
  challenge.tags = static_cast<TagKind>(tags);
  return challenge;
}

StreamSession make_session(const HelloBytes& hello, const StreamChallenge& challenge,
                           const wire::Key& key) {
  const auto bytes = keyed_hash<64>("unisono stream session", {hello, told_by(challenge)}, key);
  StreamSession session;
  const std::span all(bytes);
  std::ranges::copy(all.first<16>(), session.answer.begin());
  session.header_key.low = load_little_endian<std::uint64_t>(bytes.data() + 16);
  session.header_key.high = load_little_endian<std::uint64_t>(bytes.data() + 24);
  std::ranges::copy(all.subspan<32, 32>(), session.payload_key.begin());
  return session;
}

bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace unisono::transport
