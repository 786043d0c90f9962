// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::reliable {
namespace {

// Shorter pieces would be mostly headers; no sender makes them.
constexpr std::size_t kLeastPiece = 64;

// The identifier only has to be the same for all repetitions of a packet, and different for others.
std::uint64_t name_of(std::span<const std::byte> packet) {
  std::uint64_t tag = 0;
  std::memcpy(&tag, packet.data() + offsetof(unisono_packet, tag), sizeof tag);
  return tag;
}

}  // namespace

std::vector<std::byte> joined(const wire::Envelope& envelope, std::span<const std::byte> payload) {
  std::vector<std::byte> packet(envelope.begin(), envelope.end());
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

std::vector<PacketPiece> cut(const wire::PacketFilter& filter, std::uint32_t target,
                             std::span<const std::byte> packet, std::size_t most_bytes) {
  const std::size_t length = (most_bytes - wire::kHeaderBytes) / 8 * 8;
  wire::Header header = filter.header(wire::Kind::piece, target, 0);
  header.position = static_cast<std::uint32_t>(length);
  header.value = packet.size();
  header.flag = name_of(packet);
  std::vector<PacketPiece> pieces;
  for (std::size_t done = 0; done < packet.size(); done += length) {
    header.place = done;
    pieces.push_back({header, packet.subspan(done, std::min(length, packet.size() - done))});
  }
  return pieces;
}

Pieces::Packet& Pieces::packet_of(const wire::Header& header) {
  for (Packet& packet : packets_) {
    if (packet.sender == header.sender && packet.name == header.flag &&
        packet.cut == header.position && packet.bytes.size() == header.value) {
      return packet;
    }
  }
  if (packets_.size() < kPackets) packets_.emplace_back();
  Packet& packet = *std::ranges::min_element(packets_, {}, &Packet::touched);
  packet.sender = header.sender;
  packet.name = header.flag;
  packet.cut = header.position;
  packet.bytes.resize(header.value);
  packet.lacking = (header.value + header.position - 1) / header.position;
  packet.has.assign(packet.lacking, false);
  return packet;
}

std::span<const std::byte> Pieces::take(const wire::Header& header,
                                        std::span<const std::byte> payload) {
  const std::uint64_t length = header.position;
  const std::uint64_t whole = header.value;
  if (length < kLeastPiece || whole < wire::kHeaderBytes || whole > most_bytes_ ||
      header.place >= whole || header.place % length != 0 ||
      payload.size() != std::min(length, whole - header.place)) {
    return {};
  }
  Packet& packet = packet_of(header);
  packet.touched = ++now_;
  const std::size_t index = header.place / length;
  if (packet.has[index]) return {};
  packet.has[index] = true;
  std::memcpy(packet.bytes.data() + header.place, payload.data(), payload.size());
  if (--packet.lacking != 0) return {};
  packet.touched = 0;  // the next one may have its place
  packet.name = 0;
  packet.cut = 0;
  return packet.bytes;
}

}  // namespace unisono::reliable
