// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of the packet's checks. An accepted packet lies within the input and within the job, goes
// back to the same bytes, and still does not pass a packet filter without the key. A sealed packet
// passes, whatever the payload.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "wire/packet_filter.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::wire;
  constexpr Key kKey{0x0123456789abcdef, 0xfedcba9876543210};
  constexpr int kRank = 1;
  constexpr int kRanks = 4;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);

  // "UNIS" as the job, so that a corpus can be written by hand.
  const unisono_receiver receiver{0x53494e55, kRank, kRanks};
  const Parsed parsed = parse(bytes, receiver);
  if (parsed.drop == Drop::none) {
    UNISONO_CHECK(parsed.payload.data() == bytes.data() + kHeaderBytes, "where the payload is");
    UNISONO_CHECK(parsed.payload.size() == size - kHeaderBytes, "how long the payload is");
    UNISONO_CHECK(parsed.header.length == parsed.payload.size(), "length");
    UNISONO_CHECK(parsed.header.sender < kRanks && parsed.header.sender != kRank, "sender");
    UNISONO_CHECK(parsed.header.origin < kRanks, "origin");
    unisono_packet again = parsed.header;
    unisono_packet_swap(&again);
    UNISONO_CHECK(std::memcmp(&again, data, kHeaderBytes) == 0, "a round trip changed the header");
  } else {
    UNISONO_CHECK(parsed.payload.empty(), "a payload of a dropped packet");
    UNISONO_CHECK(static_cast<std::size_t>(parsed.drop) < kDropCount, "reason of a drop");
  }

  PacketFilter filter(kKey, kRank, kRanks);
  UNISONO_CHECK(filter.admit(bytes).drop != Drop::none, "a packet made without the key");
  UNISONO_CHECK(filter.drops().total() == 1, "drops are counted");

  const PacketFilter sender(kKey, 0, kRanks);
  const auto payload = bytes.first(std::min<std::size_t>(size, 65535));
  const Envelope envelope = sender.seal(sender.header(Kind::put, kRank, size), payload);
  std::vector<std::byte> packet(envelope.size() + payload.size());
  std::copy(payload.begin(), payload.end(),
            std::copy(envelope.begin(), envelope.end(), packet.begin()));
  UNISONO_CHECK(filter.admit(packet).drop == Drop::none, "a sealed packet was dropped");
  UNISONO_CHECK(filter.admit(packet).drop == Drop::replay, "a packet was taken twice");
  return 0;
}
