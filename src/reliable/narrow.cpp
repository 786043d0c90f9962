// SPDX-License-Identifier: BSD-3-Clause
// The part of Reliable that deals with paths which carry less than the interfaces say: what shows
// that one does, and what becomes of packets that are too long for it (paths.hpp, pieces.hpp).
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "reliable/reliable.hpp"

namespace unisono::reliable {

std::size_t Reliable::most_bytes_to(int target) const {
  if (target == transport::kGroup) return group_most_bytes_;
  return paths_.most_bytes(target);
}

bool Reliable::is_too_long(int target, std::size_t payload_bytes) const {
  if (!paths_.is_narrow() && group_most_bytes_ == Paths::kAny) return false;
  return wire::kHeaderBytes + payload_bytes > most_bytes_to(target);
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

// The sender of the pieces need not be trusted: the packet in them has a tag of its own.
void Reliable::take_piece(const wire::Parsed& piece) {
  const std::span<const std::byte> bytes = pieces_.take(piece.header, piece.payload);
  if (bytes.empty()) return;
  const wire::Parsed packet = gate_.open(bytes);
  if (packet.drop != wire::Drop::none) return;
  if (static_cast<wire::Kind>(packet.header.kind) != wire::Kind::piece) handle(packet);
}

// Each leaves in a call of its own. Otherwise the kernel may join several to one message that is
// cut only behind a narrow part of the path.
void Reliable::send_probes(const Paths::Round& round) {
  Link& link = link_to(round.rank);
  const std::vector<std::byte> filling(payload_bytes_);
  const auto target = static_cast<std::uint32_t>(round.rank);
  for (const Paths::Probe& probe : round.probes) {
    wire::Header header = gate_.header(wire::Kind::probe, target, link.control_number++);
    header.position = static_cast<std::uint32_t>(probe.length);
    header.value = round.number;
    const std::span body = std::span(filling).first(probe.bytes - wire::kHeaderBytes);
    const wire::Envelope envelope = gate_.seal(header, body);
    const transport::Outgoing datagram{.target = round.rank, .head = envelope, .body = body};
    if (datagrams_->send({&datagram, 1}) == 0) return paths_.withdraw(round);  // no room
  }
  wire::Header question = status_header(link, round.rank);
  question.position = kWantsAnswer;
  question.flag = round.number;
  question.sequence = link.control_number++;
  // Not send_control(): nobody waits for this rank, and its silence is not counted.
  send_packet(round.rank, gate_.seal(question, {}), {});
  ++counts_.probes;
}

// If the path is found to be narrow, the packets that its host lacks and that are too long for it
// have all vanished. They go again, in pieces, before they are requested. Multicasts pass there
// too.
void Reliable::take_report(int sender, const wire::Header& status) {
  if (!paths_.take_report(sender, PathReport::of(status.flag), now_ns_)) return;
  const std::size_t most_bytes = paths_.is_blocked(sender) ? 0 : paths_.most_bytes(sender);
  if (options_.narrowed) options_.narrowed(sender, most_bytes);
  if (most_bytes == 0) return;
  for (std::size_t other = 0; other < links_.size(); ++other) {
    const auto target = static_cast<int>(other);
    if (links_[other] == nullptr || !paths_.same_host(sender, target)) continue;
    const SendingSide& sending = links_[other]->sending;
    for (std::uint64_t number = sending.lacking(); number != sending.unsent(); ++number) {
      const std::uint32_t index = sending.kept(number);
      KeptPacket& packet = pool_.at(index);
      if (packet.queued || !is_too_long(target, packet.payload_bytes)) continue;
      packet.queued = true;
      queue_.push_back(index);
      ++counts_.repeated;
    }
  }
  if (group_.has(sender) && group_.has(datagrams_->rank())) narrow_group(most_bytes);
}

// A multicast that has to be repeated on a known narrow path was most likely too long for that part
// of the network. Its origin is told each time, because that message may be lost too.
void Reliable::tell_origin(int target, const wire::Envelope& envelope, std::size_t payload_bytes) {
  if (!is_too_long(target, payload_bytes)) return;
  wire::Header header;
  std::memcpy(&header, envelope.data(), sizeof header);
  unisono_packet_swap(&header);
  const int origin = static_cast<int>(header.origin);
  const std::size_t most_bytes = paths_.most_bytes(target);
  if (origin == datagrams_->rank()) return narrow_group(most_bytes);
  wire::Header status = status_header(link_to(origin), origin);
  status.hop = static_cast<std::uint16_t>(most_bytes);
  send_control(origin, status);
}

void Reliable::narrow_group(std::size_t most_bytes) {
  if (!datagrams_->limits().multicast) return;
  most_bytes = std::max(most_bytes, Paths::kSteps.back());
  if (most_bytes >= std::min(group_most_bytes_, datagrams_->limits().max_payload)) return;
  group_most_bytes_ = most_bytes;
  if (options_.narrowed) options_.narrowed(transport::kGroup, most_bytes);
}

}  // namespace unisono::reliable
