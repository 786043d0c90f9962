// SPDX-License-Identifier: BSD-3-Clause
// The handshake of a stream. The connecting rank sends a Hello with a proof that it has the job's
// key; a listening rank answers nothing before it has seen that. Its Challenge proves the same to
// the connecting rank, which then proves that it is no repetition. Frames follow, under keys that
// only these two nonces give. Pure functions but random_nonce(); any thread.
//
//     connecting rank                          listening rank
//     Hello      magic, version, job, from, to, tags, nonce, proof ->
//                                           <- Challenge  nonce, tags, proof
//     Answer     proof; then frames ->
//
// The Hello names the kind of tags that the connecting rank prefers, and the Challenge the one of
// the stream: that kind if the listening rank prefers it too, otherwise one that both can compute
// (common_tags()). A rank prefers what it computes fastest, or none where its user trusts the
// network. Proofs and keys are keyed BLAKE2b hashes of the Hello, the nonce and tags of the
// Challenge, and a word for each purpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "transport/tcp/tags/payload_tag.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

using StreamNonce = std::array<std::byte, 16>;
using StreamProof = std::array<std::byte, 16>;

inline constexpr std::size_t kHelloBytes = 56;
inline constexpr std::size_t kChallengeBytes = 36;
inline constexpr std::size_t kAnswerBytes = sizeof(StreamProof);
using HelloBytes = std::array<std::byte, kHelloBytes>;
using ChallengeBytes = std::array<std::byte, kChallengeBytes>;

struct StreamHello {
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  TagKind tags = TagKind::poly1305;
  StreamNonce nonce{};
};

struct StreamChallenge {
  StreamNonce nonce{};
  TagKind tags = TagKind::poly1305;
  bool operator==(const StreamChallenge&) const = default;
};

// Both sides know it after the Challenge.
struct StreamSession {
  StreamProof answer{};
  wire::Key header_key{};
  PayloadKey payload_key{};
};

// Once, before all others. Errors: system.
base::Status prepare_handshakes();
StreamNonce random_nonce();

HelloBytes encode_hello(const StreamHello& hello, const wire::Key& key);
// nullopt: it is of another job, or has no proof of the key.
std::optional<StreamHello> decode_hello(std::span<const std::byte, kHelloBytes> bytes,
                                        const wire::Key& key);
// Whether the bytes may be the beginning of a Hello, so that others are dropped at once.
bool may_be_hello(std::span<const std::byte> beginning);

ChallengeBytes encode_challenge(const StreamChallenge& challenge, const HelloBytes& hello,
                                const wire::Key& key);
// nullopt: the sender does not have the key, answers another Hello, or wants unknown tags.
std::optional<StreamChallenge> decode_challenge(std::span<const std::byte, kChallengeBytes> bytes,
                                                const HelloBytes& hello, const wire::Key& key);

StreamSession make_session(const HelloBytes& hello, const StreamChallenge& challenge,
                           const wire::Key& key);

// In a time that does not depend on where they differ.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace unisono::transport
