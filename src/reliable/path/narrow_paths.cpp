// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/narrow_paths.hpp"

#include <cstring>
#include <span>
#include <vector>

namespace unisono::reliable {

void NarrowPaths::send_probes() {
  while (const auto round = sizes_.paths().due(context_.now_ns)) send_round(*round);
}

// Each leaves in a call of its own. Otherwise the kernel may join several to one message that is
// cut only behind a narrow part of the path.
void NarrowPaths::send_round(const Paths::Round& round) {
  Link& link = links_.of(round.rank);
  const std::vector<std::byte> filling(DatagramSizes::full_payload(datagrams_.limits()));
  const auto target = static_cast<std::uint32_t>(round.rank);
  for (const Paths::Probe& probe : round.probes) {
    wire::Header header = context_.filter.header(wire::Kind::probe, target, link.control_number++);
    header.position = static_cast<std::uint32_t>(probe.length);
    header.value = round.number;
    const std::span body = std::span(filling).first(probe.bytes - wire::kHeaderBytes);
    const wire::Envelope envelope = context_.filter.seal(header, body);
    const transport::Outgoing datagram{.target = round.rank, .head = envelope, .body = body};
    if (datagrams_.send({&datagram, 1}) == 0) return sizes_.paths().withdraw(round);  // no room
  }
  wire::Header question = control_.status_header(link, round.rank);
  question.position = kWantsAnswer;
  question.flag = round.number;
  control_.send_uncounted(round.rank, question);
  ++context_.counts.probes;
}

void NarrowPaths::take_probe(Link& link, const wire::Header& probe) {
  link.probes.note_probe(probe.position, static_cast<std::uint16_t>(probe.value));
}

// If the path is found to be narrow, the packets that its host lacks and that are too long for it
// have all vanished. They are repeated in pieces before they are requested. Multicasts pass there
// too.
void NarrowPaths::take_report(int sender, const wire::Header& status) {
  if (!sizes_.paths().take_report(sender, PathReport::of(status.flag), context_.now_ns)) return;
  const std::size_t most_bytes = sizes_.note_path(sender);
  if (most_bytes == 0) return;
  repeat_too_long(sender);
  if (context_.is_in_group(sender) && context_.is_in_group(context_.rank)) {
    sizes_.narrow_group(most_bytes);
  }
}

void NarrowPaths::repeat_too_long(int sender) {
  links_.for_each([&](const Link& link, int target) {
    if (!sizes_.paths().same_host(sender, target)) return;
    const SendingSide& sending = link.sending;
    for (std::uint64_t number = sending.lacking(); number != sending.unsent(); ++number) {
      const std::uint32_t index = sending.kept(number);
      if (sizes_.is_too_long(target, outbox_.kept(index).payload_bytes)) outbox_.repeat(index);
    }
  });
}

// A multicast that has to be repeated on a known narrow path was most likely too long for that part
// of the network. Its origin is told each time, because that message may be lost too.
void NarrowPaths::note_repair(int target, const wire::Envelope& envelope,
                              std::size_t payload_bytes) {
  if (payload_bytes == 0 || !sizes_.is_too_long(target, payload_bytes)) return;
  wire::Header header;
  std::memcpy(&header, envelope.data(), sizeof header);
  unisono_packet_swap(&header);
  const int origin = static_cast<int>(header.origin);
  const std::size_t most_bytes = sizes_.most_bytes(target);
  if (origin == context_.rank) return sizes_.narrow_group(most_bytes);
  wire::Header status = control_.status_header(links_.of(origin), origin);
  status.hop = static_cast<std::uint16_t>(most_bytes);
  control_.send(origin, status);
}

}  // namespace unisono::reliable
