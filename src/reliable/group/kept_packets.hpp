// SPDX-License-Identifier: BSD-3-Clause
// KeptPackets: the last packets of one origin, by number, to repeat them to children in the repair
// tree. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/packet_filter.hpp"

namespace unisono::reliable {

// The most children of a rank in the repair tree.
inline constexpr int kMostArity = 8;

class KeptPackets {
 public:
  struct Packet {
    std::uint64_t number = 0;
    bool valid = false;
    wire::Header header{};
    std::uint32_t bytes = 0;
    std::array<std::int64_t, kMostArity> sent_ns{};  // by number of the child: the last time
  };

  // Takes the memory with the first packet: most ranks are leaves and keep nothing.
  KeptPackets(std::uint64_t packets, std::size_t payload_bytes)
      : most_(packets), payload_bytes_(payload_bytes) {}

  void keep(const wire::Header& header, std::span<const std::byte> payload, std::int64_t now_ns);
  Packet* find(std::uint64_t number) {
    if (packets_.empty()) return nullptr;
    Packet& packet = packets_[number % packets_.size()];
    return packet.valid && packet.number == number ? &packet : nullptr;
  }
  std::span<const std::byte> payload(const Packet& packet) const {
    return {bytes_.get() + packet.number % packets_.size() * payload_bytes_, packet.bytes};
  }

 private:
  std::uint64_t most_;
  std::size_t payload_bytes_;
  std::vector<Packet> packets_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace unisono::reliable
