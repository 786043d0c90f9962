// SPDX-License-Identifier: BSD-3-Clause
// The part of Reliable that deals with paths which carry less than the interfaces say: what shows
// that one does, and what becomes of packets that are too long for it (path_size.hpp, pieces.hpp).
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "reliable/reliable.hpp"

namespace unisono::reliable {

std::size_t Reliable::most_bytes_to(int target) const {
  if (target == transport::kGroup) return group_most_bytes_;
  return links_[static_cast<std::size_t>(target)]->path.most_bytes();
}

bool Reliable::is_too_long(int target, std::size_t payload_bytes) const {
  return is_narrow_ && wire::kHeaderBytes + payload_bytes > most_bytes_to(target);
}

void Reliable::send_in_pieces(int target, const wire::Envelope& envelope,
                              std::span<const std::byte> payload) {
  const std::vector<std::byte> packet = joined(envelope, payload);
  const auto to = target == transport::kGroup ? wire::kToGroup : static_cast<std::uint32_t>(target);
  for (const Piece& piece : cut(gate_, to, packet, most_bytes_to(target))) {
    loose_.push_back(
        {target, gate_.seal(piece.header, piece.bytes), {piece.bytes.begin(), piece.bytes.end()}});
    ++counts_.pieces;
  }
}

// Whoever sent the pieces, the packet in them has a tag of its own.
void Reliable::take_piece(const wire::Parsed& piece) {
  const std::span<const std::byte> bytes = pieces_.take(piece.header, piece.payload);
  if (bytes.empty()) return;
  const wire::Parsed packet = gate_.open(bytes);
  if (packet.drop != wire::Drop::none) return;
  if (static_cast<wire::Kind>(packet.header.kind) != wire::Kind::piece) handle(packet);
}

// What a request says of the path to who makes it.
void Reliable::note_request(Link& link, int sender, int stream, const wire::Header& header) {
  if (!link.path.note_request(stream, header.place, header.value, header.communicator)) return;
  is_narrow_ = true;
  if (options_.narrowed) {
    options_.narrowed(sender, link.path.is_blocked() ? 0 : link.path.most_bytes());
  }
}

// A multicast that has to be repeated on a path that is known to be narrow was lost, most likely,
// because it was too long for that part of the network: its origin is told, every time, for that
// may be lost too.
void Reliable::note_group_repeat(int target, const wire::Envelope& envelope,
                                 std::size_t payload_bytes) {
  wire::Header header;
  std::memcpy(&header, envelope.data(), sizeof header);
  unisono_packet_swap(&header);
  const int origin = static_cast<int>(header.origin);
  Link& link = link_to(target);
  link.path.note_repeat(origin, header.sequence, wire::kHeaderBytes + payload_bytes, now_ns_);
  if (!is_too_long(target, payload_bytes)) return;
  const std::size_t most_bytes = link.path.most_bytes();
  if (origin == datagrams_->rank()) return narrow_group(most_bytes);
  wire::Header status = status_header(link_to(origin), origin);
  status.hop = static_cast<std::uint16_t>(most_bytes);
  send_control(origin, status);
}

void Reliable::narrow_group(std::size_t most_bytes) {
  most_bytes = std::max(most_bytes, PathSize::kSteps.back());
  if (most_bytes >= std::min(group_most_bytes_, datagrams_->limits().max_payload)) return;
  group_most_bytes_ = most_bytes;
  is_narrow_ = true;
  if (options_.narrowed) options_.narrowed(transport::kGroup, most_bytes);
}

// Behind all that is to be sent, so that a peer which has heard of it has, but for what vanished on
// its way, all that was repeated before. If that takes long, the peer hears at once besides that
// this rank is there.
void Reliable::queue_status(Link& link, int rank) {
  constexpr std::size_t kMany = 64;
  if (queue_.size() > kMany) send_status(link, rank, false);
  if (std::exchange(link.status_queued, true)) return;
  queue_.push_back(kStatusTo | static_cast<std::uint32_t>(rank));
}

bool Reliable::send_queued_status(int rank) {
  Link& link = link_to(rank);
  wire::Header header = status_header(link, rank);
  header.sequence = link.control_number++;
  const wire::Envelope envelope = gate_.seal(header, {});
  const transport::Outgoing datagram{.target = rank, .head = envelope, .body = {}};
  if (datagrams_->send({&datagram, 1}) == 0) return false;
  link.status_queued = false;
  link.path.note_status(header.sequence);
  return true;
}

}  // namespace unisono::reliable
