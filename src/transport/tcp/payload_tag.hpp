// SPDX-License-Identifier: BSD-3-Clause
// PayloadTagger: the tags of a stream's payloads: Poly1305 (RFC 8439, section 2.5). Each frame has
// a key of its own, a keyed BLAKE2b hash of its number under the connection's key. libcrypto
// computes the tag with the processor's widest registers, if it can be loaded; otherwise libsodium
// does, with the same result. So two hosts need not have the same library. One object belongs to
// one rank; one thread at a time.
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

class PayloadTagger {
 public:
  enum class Library : std::uint8_t { crypto, sodium };

  // The faster one that is there.
  static Library choose();

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
// "libcrypto", "libsodium"
std::string_view library_name(PayloadTagger::Library library);

}  // namespace unisono::transport
