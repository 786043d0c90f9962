// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/group_context.hpp"

namespace unisono::reliable {

void GroupContext::send_by_unicast(std::span<const int> children, wire::Header header,
                                   std::span<const std::byte> payload) {
  if (children.empty()) return;
  header.hop = kByUnicast;
  const wire::Envelope envelope = filter.seal(header, payload);
  for (const int child : children) {
    if (!options.tree.has_left(child)) packets.send(child, envelope, payload);
  }
}

void GroupContext::repair(KeptPackets& kept, KeptPackets::Packet& packet, int child,
                          std::int64_t now_ns) {
  const int origin = static_cast<int>(packet.header.origin);
  const auto number = static_cast<std::size_t>(options.tree.number_of(origin, child));
  std::int64_t& sent_ns = packet.sent_ns[number];
  if (now_ns - sent_ns < options.linger_ns) {
    ++counts.lingering;
    return;
  }
  sent_ns = now_ns;
  ++counts.repaired;
  send_by_unicast(std::span(&child, 1), packet.header, kept.payload(packet));
}

}  // namespace unisono::reliable
