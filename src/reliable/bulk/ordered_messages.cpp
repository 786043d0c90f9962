// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/bulk/ordered_messages.hpp"

namespace unisono::reliable {

void OrderedMessages::put(const transport::Put& message, bool may_go) {
  Peer& peer = peers_[static_cast<std::size_t>(message.target)];
  const bool is_last = message.flag != nullptr;
  if (peer.way == Way::undecided) {
    const bool is_long = message.bytes >= from_bytes_;
    if (!is_long && !is_last) return peer.kept.keep(message);
    const bool goes = is_long && may_go && parts_.memory.accepts_message(message.target);
    peer.way = goes ? Way::memory : Way::packets;
    if (is_long) ++(goes ? parts_.counts.written : parts_.counts.refused);
    if (!peer.kept.pieces.empty()) {
      peer.kept.target = message.target;
      put_kept_by(peer.way, peer);
    }
  }
  put_by(peer.way, message);
  if (is_last) peer.way = Way::undecided;
}

void OrderedMessages::put_by(Way way, const transport::Put& message) {
  if (way == Way::packets) return parts_.reliable.put(message);
  const auto offset = [this](const void* place) {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - region_);
  };
  parts_.memory.write({.rank = message.target,
                       .offset = message.bytes == 0 ? 0 : offset(message.place),
                       .from = message.source,
                       .bytes = message.bytes,
                       .flag = message.flag == nullptr ? transport::kNoFlag : offset(message.flag),
                       .flag_value = message.flag_value,
                       .forward = message.forward});
}

void OrderedMessages::put_kept_by(Way way, Peer& peer) {
  for (const BulkMessage::Piece& piece : peer.kept.pieces) {
    put_by(way, {.target = peer.kept.target,
                 .source = peer.kept.bytes.data() + piece.begin,
                 .place = piece.place,
                 .bytes = piece.count});
  }
  peer.kept.pieces.clear();
  peer.kept.bytes.clear();  // keeps its memory for the next
}

}  // namespace unisono::reliable
