// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/kept_packets.hpp"

#include <cstring>

namespace unisono::reliable {

void KeptPackets::keep(const wire::Header& header, std::span<const std::byte> payload,
                       std::int64_t now_ns) {
  if (packets_.empty()) {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(most_ * payload_bytes_);
    packets_.resize(most_);  // last: if memory is refused, the next packet asks for it again
  }
  const std::uint64_t number = header.sequence;
  Packet& packet = packets_[number % packets_.size()];
  packet = {};
  packet.number = number;
  packet.valid = true;
  packet.header = header;
  packet.bytes = static_cast<std::uint32_t>(payload.size());
  packet.sent_ns.fill(now_ns);  // to all of them at once
  if (payload.empty()) return;
  std::memcpy(bytes_.get() + number % packets_.size() * payload_bytes_, payload.data(),
              payload.size());
}

}  // namespace unisono::reliable
