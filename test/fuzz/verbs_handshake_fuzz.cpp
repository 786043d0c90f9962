// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of what foreign hosts can send to the queue pair that takes requests for connections.
// Datagrams made without the job's key are dropped. One made with it comes back as it was, and no
// changed byte of it passes. Cards come from ranks of the job, and may be of another form.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.hpp"
#include "transport/verbs/handshake.hpp"

namespace {

using namespace unisono;
using namespace unisono::transport;

constexpr wire::Key kKey{0x0123456789abcdef, 0xfedcba9876543210};
constexpr wire::Key kOtherKey{0x0123456789abcdef, 0xfedcba9876543211};

// The first bytes of the input, as a value.
template <class Value>
Value value_of(std::span<const std::byte> bytes, std::size_t at) {
  Value value{};
  if (at < bytes.size()) std::memcpy(&value, &bytes[at], std::min(sizeof value, bytes.size() - at));
  return value;
}

void try_genuine(std::span<const std::byte> bytes) {
  const VerbsHandshake handshake{.kind = value_of<VerbsHandshake::Kind>(bytes, 8),
                                 .from = value_of<std::uint32_t>(bytes, 12),
                                 .to = value_of<std::uint32_t>(bytes, 16),
                                 .queue_pair = value_of<std::uint32_t>(bytes, 20),
                                 .first_packet = value_of<std::uint32_t>(bytes, 24),
                                 .mtu = value_of<std::uint32_t>(bytes, 28),
                                 .address = value_of<std::uint64_t>(bytes, 32),
                                 .key = value_of<std::uint32_t>(bytes, 40)};
  VerbsHandshakeBytes encoded = encode_verbs_handshake(handshake, kKey);
  const auto again = decode_verbs_handshake(encoded, kKey);
  const bool is_known = handshake.kind == VerbsHandshake::Kind::request ||
                        handshake.kind == VerbsHandshake::Kind::answer;
  UNISONO_CHECK(again.has_value() == is_known, "a handshake of an unknown kind");
  UNISONO_CHECK(!again || *again == handshake, "a round trip changed the handshake");
  UNISONO_CHECK(!decode_verbs_handshake(encoded, kOtherKey), "a handshake of another job");
  UNISONO_CHECK(!decode_verbs_handshake(std::span(encoded).first(kVerbsHandshakeBytes - 1), kKey),
                "a handshake that lacks a byte");
  const std::size_t at = value_of<std::uint8_t>(bytes, 0) % encoded.size();
  encoded[at] ^= std::byte{static_cast<std::uint8_t>(1 << (value_of<std::uint8_t>(bytes, 1) % 8))};
  UNISONO_CHECK(!decode_verbs_handshake(encoded, kKey), "a changed handshake");
}

void try_card(std::span<const std::byte> bytes) {
  const RegionCard known = card_of_verbs({});
  RegionCard card = known;
  std::memcpy(card.address.data(), bytes.data(), std::min(card.address.size(), bytes.size()));
  const auto address = verbs_address_of(card);
  UNISONO_CHECK(address.has_value(), "an address of any bytes");
  UNISONO_CHECK(verbs_address_of(card_of_verbs(*address)) == address, "a round trip of an address");
  card.key = value_of<std::uint64_t>(bytes, 0);
  UNISONO_CHECK(card.key == known.key || !verbs_address_of(card), "a card of another transport");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  UNISONO_CHECK(!decode_verbs_handshake(bytes, kKey), "a handshake made without the key");
  try_genuine(bytes);
  try_card(bytes);
  return 0;
}
