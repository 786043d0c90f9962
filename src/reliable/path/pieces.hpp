// SPDX-License-Identifier: BSD-3-Clause
// Pieces of packets that turned out to be too long for their path after they were sealed and
// numbered. Each piece is a packet with a tag of its own. Together they are the bytes of the cut
// packet, which is then opened as if it had come in one datagram. Pieces of different repetitions
// fit together. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet_filter.hpp"

namespace unisono::reliable {

// Header and payload as they would have gone in one datagram.
std::vector<std::byte> joined(const wire::Envelope& envelope, std::span<const std::byte> payload);

struct PacketPiece {
  wire::Header header{};
  std::span<const std::byte> bytes{};  // of the packet that was cut
};
// Cuts a packet, as joined() returns it, into datagrams of at most `most_bytes` with their headers.
std::vector<PacketPiece> cut(const wire::PacketFilter& filter, std::uint32_t target,
                             std::span<const std::byte> packet, std::size_t most_bytes);

class Pieces {
 public:
  // Longer packets than that are not believed.
  explicit Pieces(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // The packet that this piece completes; empty if others are missing. Valid until the next call.
  std::span<const std::byte> take(const wire::Header& header, std::span<const std::byte> payload);

 private:
  struct Packet {
    std::uint32_t sender = 0;
    std::uint64_t name = 0;  // of the packet, the same in all its pieces
    std::uint32_t cut = 0;   // bytes of each piece but the last
    std::size_t lacking = 0;
    std::uint64_t touched = 0;
    std::vector<std::byte> bytes{};
    std::vector<bool> has{};  // by piece
  };
  // As many as one request may ask for. The least recently used one is dropped, and requested
  // again.
  static constexpr std::size_t kPackets = 64;

  Packet& packet_of(const wire::Header& header);

  std::size_t most_bytes_;
  std::uint64_t now_ = 0;
  std::vector<Packet> packets_;
};

}  // namespace unisono::reliable
