// SPDX-License-Identifier: BSD-3-Clause
// PayloadTagger: the tags of a stream's payloads. The handshake of a stream agrees on a kind:
// - Poly1305 (RFC 8439, section 2.5). Each frame has a key of its own, a keyed BLAKE2b hash of its
//   number under the connection's key. libcrypto computes the tag with the processor's widest
//   registers, if it can be loaded; otherwise libsodium does, with the same result. So two hosts
//   need not have the same library.
// - AEGIS-128L (aegis.hpp), where the processors of both hosts have AES instructions, or
// AEGIS-128X2,
//   where these take two blocks at once.
// - AES-128-GMAC (RFC 4543), where both hosts compute it faster still (libipsec_mb.hpp).
//   Their key is the first half of the connection's, and their nonce the frame's number.
// - None, where both ranks are set to trust their network: each tag is zero.
// One object belongs to one rank; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace unisono::transport {

using PayloadTag = std::array<std::byte, 16>;
using PayloadKey = std::array<std::byte, 32>;

// The values are those of a Challenge.
enum class TagKind : std::uint32_t { poly1305 = 0, gmac = 1, none = 2, aegis = 3, aegis_x2 = 4 };

class PayloadTagger {
 public:
  enum class Library : std::uint8_t { ipsec_mb, own_wide, own, crypto, sodium, none };

  // The fastest one that is there, for that kind.
  static Library choose(TagKind kind);

  virtual ~PayloadTagger() = default;
  PayloadTagger() = default;
  PayloadTagger(const PayloadTagger&) = delete;
  PayloadTagger& operator=(const PayloadTagger&) = delete;

  // Each number for one payload, or others could learn its key from two.
  virtual PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) = 0;
};

// By a library that choose() found. Null: no memory.
std::unique_ptr<PayloadTagger> make_payload_tagger(PayloadTagger::Library library,
                                                   const PayloadKey& key);
// Whether that library can compute tags here.
bool can_tag(PayloadTagger::Library library);
// The kind of tags that it computes.
TagKind kind_of(PayloadTagger::Library library);
// The kind that this host computes fastest.
TagKind fastest_tags();
// The kind of a stream between two hosts, by those that they prefer. A host that computes GMAC fast
// can compute AEGIS-128X2 too, and one with that can compute AEGIS-128L.
TagKind common_tags(TagKind one, TagKind other);
// "libIPSec_MB", "AEGIS-128X2", "AEGIS-128L", "libcrypto", "libsodium", "none"
std::string_view library_name(PayloadTagger::Library library);

}  // namespace unisono::transport
