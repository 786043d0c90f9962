// SPDX-License-Identifier: BSD-3-Clause
// The checks of incoming packets, the cheapest first (packet_filter.hpp). Data path: it allocates
// only the replay windows of a sender, at the first genuine packet.
#include "wire/packet_filter.hpp"

#include <cstring>
#include <limits>

#include "base/check.hpp"
#include "wire/payload_digest.hpp"

namespace unisono::wire {

namespace {

// From here on the lanes of a digest are faster than one hash, whose words wait for each other.
constexpr std::size_t kLongPayload = 256;

// Form and version of the packet are known, and the payload is as long as the header says.
std::uint64_t tag_of(const Key& key, const Header& header, std::span<const std::byte> payload) {
  if (payload.size() < kLongPayload) return unisono_packet_tag(&key, &header, payload.data());
  unisono_siphash_state state = unisono_siphash_start(&key);
  unisono_siphash_header(&state, &header);
  for (const std::uint64_t lane : payload_digest(key, payload)) unisono_siphash_word(&state, lane);
  return unisono_siphash_end(&state, 0, kHeaderBytes - sizeof header.tag + sizeof(PayloadDigest));
}

}  // namespace

Parsed parse(std::span<const std::byte> datagram, const unisono_receiver& receiver) {
  Parsed result;
  if (datagram.size() < kHeaderBytes) {
    result.drop = Drop::too_short;
    return result;
  }
  if (datagram.size() > std::numeric_limits<std::uint16_t>::max() + kHeaderBytes) {
    result.drop = Drop::length;
    return result;
  }
  std::memcpy(&result.header, datagram.data(), kHeaderBytes);
  unisono_packet_swap(&result.header);
  const auto bytes = static_cast<std::uint32_t>(datagram.size());
  result.drop = static_cast<Drop>(unisono_packet_check(&result.header, bytes, &receiver));
  if (result.drop == Drop::none) result.payload = datagram.subspan(kHeaderBytes);
  return result;
}

PacketFilter::PacketFilter(const Key& key, int rank, int ranks)
    : key_(key),
      identity_{job_of(key), static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks)},
      windows_(static_cast<std::size_t>(ranks)) {
  UNISONO_CHECK(rank >= 0 && rank < ranks, "rank of a packet filter");
}

Header PacketFilter::header(Kind kind, std::uint32_t target, std::uint64_t sequence) const {
  Header header{};
  header.magic = UNISONO_PACKET_MAGIC;
  header.version = UNISONO_PACKET_VERSION;
  header.kind = static_cast<std::uint8_t>(kind);
  header.job = identity_.job;
  header.sequence = sequence;
  header.sender = identity_.rank;
  header.target = target;
  header.origin = identity_.rank;
  header.place = kNoPlace;
  header.flag = kNoPlace;
  return header;
}

Envelope PacketFilter::seal(Header header, std::span<const std::byte> payload) const {
  UNISONO_CHECK(payload.size() <= std::numeric_limits<std::uint16_t>::max(), "payload of a packet");
  header.length = static_cast<std::uint16_t>(payload.size());
  header.tag = tag_of(key_, header, payload);
  unisono_packet_swap(&header);
  Envelope envelope;
  std::memcpy(envelope.data(), &header, kHeaderBytes);
  return envelope;
}

Parsed PacketFilter::dropped(Drop reason) {
  drops_.count(reason);
  Parsed result;
  result.drop = reason;
  return result;
}

Parsed PacketFilter::open(std::span<const std::byte> datagram) {
  const Parsed parsed = parse(datagram, identity_);
  if (parsed.drop != Drop::none) return dropped(parsed.drop);
  const std::uint64_t tag = tag_of(key_, parsed.header, parsed.payload);
  if (unisono_tag_equal(tag, parsed.header.tag) == 0) return dropped(Drop::tag);
  return parsed;
}

Parsed PacketFilter::admit(std::span<const std::byte> datagram) {
  const Parsed parsed = open(datagram);
  if (parsed.drop != Drop::none) return parsed;
  auto& windows = windows_[parsed.header.sender];
  if (windows == nullptr) windows = std::make_unique<Windows>();
  Window& window = parsed.header.target == kToGroup ? windows->group : windows->link;
  if (window.take(parsed.header.sequence) != Freshness::fresh) return dropped(Drop::replay);
  return parsed;
}

}  // namespace unisono::wire
