// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/handshake.hpp"

#include <bit>
#include <cstring>
#include <string_view>

namespace unisono::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "the datagrams are little endian");

constexpr std::uint64_t kVerbsMagic = 0x31'76'6f'6e'6f'73'69'6eULL;
constexpr std::size_t kVerbsTagAt = kVerbsHandshakeBytes - 8;

// The layout of a datagram before its tag.
struct VerbsDatagram {
  std::uint64_t magic;
  std::uint32_t kind, from, to, queue_pair, first_packet, mtu;
  std::uint64_t address;
  std::uint32_t key, zero;
};
static_assert(sizeof(VerbsDatagram) <= kVerbsTagAt);

std::uint64_t tag_of(std::span<const std::byte> bytes, const wire::Key& key) {
  return wire::hash(key,
                    std::string_view(reinterpret_cast<const char*>(bytes.data()), kVerbsTagAt));
}

}  // namespace

RegionCard card_of_verbs(const VerbsAddress& address) {
  RegionCard card;
  card.key = kVerbsMagic;
  card.address_bytes = 24;
  std::memcpy(card.address.data(), address.gid.data(), 16);
  std::memcpy(card.address.data() + 16, &address.lid, 4);
  std::memcpy(card.address.data() + 20, &address.control, 4);
  return card;
}

std::optional<VerbsAddress> verbs_address_of(const RegionCard& card) {
  if (card.key != kVerbsMagic || card.address_bytes != 24) return std::nullopt;
  VerbsAddress address;
  std::memcpy(address.gid.data(), card.address.data(), 16);
  std::memcpy(&address.lid, card.address.data() + 16, 4);
  std::memcpy(&address.control, card.address.data() + 20, 4);
  return address;
}

VerbsHandshakeBytes encode_verbs_handshake(const VerbsHandshake& handshake, const wire::Key& key) {
  const VerbsDatagram datagram{.magic = kVerbsMagic,
                               .kind = static_cast<std::uint32_t>(handshake.kind),
                               .from = handshake.from,
                               .to = handshake.to,
                               .queue_pair = handshake.queue_pair,
                               .first_packet = handshake.first_packet,
                               .mtu = handshake.mtu,
                               .address = handshake.address,
                               .key = handshake.key,
                               .zero = 0};
  VerbsHandshakeBytes bytes{};
  std::memcpy(bytes.data(), &datagram, sizeof datagram);
  const std::uint64_t tag = tag_of(bytes, key);
  std::memcpy(bytes.data() + kVerbsTagAt, &tag, sizeof tag);
  return bytes;
}

std::optional<VerbsHandshake> decode_verbs_handshake(std::span<const std::byte> bytes,
                                                     const wire::Key& key) {
  if (bytes.size() != kVerbsHandshakeBytes) return std::nullopt;
  std::uint64_t tag = 0;
  std::memcpy(&tag, bytes.data() + kVerbsTagAt, sizeof tag);
  VerbsDatagram datagram;
  std::memcpy(&datagram, bytes.data(), sizeof datagram);
  if (tag != tag_of(bytes, key) || datagram.magic != kVerbsMagic) return std::nullopt;
  if (datagram.kind != 1 && datagram.kind != 2) return std::nullopt;
  return VerbsHandshake{.kind = static_cast<VerbsHandshake::Kind>(datagram.kind),
                        .from = datagram.from,
                        .to = datagram.to,
                        .queue_pair = datagram.queue_pair,
                        .first_packet = datagram.first_packet,
                        .mtu = datagram.mtu,
                        .address = datagram.address,
                        .key = datagram.key};
}

}  // namespace unisono::transport
