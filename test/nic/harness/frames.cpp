// SPDX-License-Identifier: BSD-3-Clause
// Frames of Ethernet, IPv4 and UDP from bytes.
#include "nic/harness/frames.hpp"

#include <arpa/inet.h>

#include <cstring>

#include "nic/lowering/row.hpp"

namespace unisono::nic::test {
namespace {

constexpr std::uint16_t kPort = 4791;

void append(Frame& frame, const void* bytes, std::size_t count) {
  const auto* first = static_cast<const std::byte*>(bytes);
  frame.insert(frame.end(), first, first + count);
}

void append16(Frame& frame, std::size_t value) {  // network order
  frame.push_back(static_cast<std::byte>(value >> 8));
  frame.push_back(static_cast<std::byte>(value));
}

std::uint32_t checksum(const std::byte* bytes, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; i += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8;
    sum += std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return ~sum & 0xFFFF;
}

}  // namespace

unisono_nic_address host_address(int rank) {
  unisono_nic_address address = {};
  address.mac[0] = 2;
  address.mac[5] = static_cast<std::uint8_t>(rank + 1);
  address.ipv4 = htonl(0x0A000001U + static_cast<std::uint32_t>(rank));
  address.port = htons(kPort);
  return address;
}

unisono_nic_address group_address() {
  return multicast_address(inet_addr("239.1.2.3"), htons(kPort));
}

unisono_packet packet_of(std::uint8_t kind, const unisono_nic_id& id, int sender,
                         std::uint64_t sequence) {
  unisono_packet packet = {};
  packet.magic = UNISONO_PACKET_MAGIC;
  packet.version = UNISONO_PACKET_VERSION;
  packet.kind = kind;
  packet.job = id.job;
  packet.communicator = id.communicator;
  packet.sender = static_cast<std::uint32_t>(sender);
  packet.origin = packet.sender;
  packet.sequence = sequence;
  packet.target = UNISONO_PACKET_GROUP;
  packet.flag = UNISONO_PACKET_NONE;
  return packet;
}

Frame make_frame(const unisono_nic_address& from, const unisono_nic_address& to,
                 unisono_packet packet, std::span<const std::uint64_t> payload,
                 const unisono_key& key, std::size_t more_words) {
  packet.length = static_cast<std::uint16_t>(payload.size_bytes());
  packet.tag = unisono_packet_tag(&key, &packet, payload.data());
  const std::size_t udp_bytes = 8 + sizeof packet + payload.size_bytes() + more_words * 8;
  Frame frame;
  append(frame, to.mac, sizeof to.mac);
  append(frame, from.mac, sizeof from.mac);
  append16(frame, 0x0800);
  append16(frame, 0x4500);
  append16(frame, 20 + udp_bytes);
  append16(frame, 0);
  append16(frame, 0x4000);  // not to be cut
  append16(frame, 64 << 8 | 17);
  append16(frame, 0);
  append(frame, &from.ipv4, sizeof from.ipv4);
  append(frame, &to.ipv4, sizeof to.ipv4);
  const std::uint32_t sum = checksum(frame.data() + kIp, 20);
  frame[kIp + 10] = static_cast<std::byte>(sum >> 8);
  frame[kIp + 11] = static_cast<std::byte>(sum);
  append(frame, &from.port, sizeof from.port);
  append(frame, &to.port, sizeof to.port);
  append16(frame, udp_bytes);
  append16(frame, 0);
  append(frame, &packet, sizeof packet);
  append(frame, payload.data(), payload.size_bytes());
  frame.resize(frame.size() + more_words * 8);
  return frame;
}

unisono_packet packet_in(const Frame& frame) {
  unisono_packet packet = {};
  if (frame.size() >= kPayload) std::memcpy(&packet, frame.data() + kPacket, sizeof packet);
  return packet;
}

Words payload_in(const Frame& frame) {
  Words words(frame.size() > kPayload ? (frame.size() - kPayload) / 8 : 0);
  if (!words.empty()) std::memcpy(words.data(), frame.data() + kPayload, words.size() * 8);
  return words;
}

}  // namespace unisono::nic::test
