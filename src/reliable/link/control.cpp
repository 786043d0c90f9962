// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/control.hpp"

namespace unisono::reliable {
namespace {

bool wants_answer(const wire::Header& header) {
  const auto kind = static_cast<wire::Kind>(header.kind);
  return kind == wire::Kind::nack ||
         (kind == wire::Kind::status && header.position == kWantsAnswer);
}

}  // namespace

void Control::send(int target, wire::Header header) {
  Link& link = links_.of(target);
  if (wants_answer(header)) {
    const std::int64_t now = context_.now_ns;
    const bool anew = link.asked_ns == 0 || now - link.asked_again_ns > context_.options.lull_ns;
    if (anew) link.asked_ns = now;
    link.asked_again_ns = now;
  }
  send_uncounted(target, header);
}

void Control::send_uncounted(int target, wire::Header header) {
  header.sequence = links_.of(target).control_number++;
  outbox_.send(target, context_.filter.seal(header, {}), {});
}

wire::Header Control::status_header(Link& link, int rank) const {
  wire::Header header =
      context_.filter.header(wire::Kind::status, static_cast<std::uint32_t>(rank), 0);
  header.place = link.sending.unsent() - 1;
  header.value = link.receiving.arrivals.missing();
  link.receiving.told = header.value;
  return header;
}

void Control::send_status(Link& link, int rank, bool wants_answer) {
  wire::Header header = status_header(link, rank);
  if (wants_answer) {
    header.position = kWantsAnswer;
    ++context_.counts.asked;
  } else {
    header.flag = link.probes.word();
  }
  send(rank, header);
}

bool Control::take(Link& link, const wire::Header& header) {
  if (link.control_seen.take(header.sequence) != wire::Freshness::fresh) return false;
  note_heard(link);
  return true;
}

std::int64_t Control::silence_ns(int rank) const {
  const Link* const link = links_.find(rank);
  return link == nullptr || link->asked_ns == 0 ? 0 : link->asked_again_ns - link->asked_ns;
}

}  // namespace unisono::reliable
