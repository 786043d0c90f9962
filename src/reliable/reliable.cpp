// SPDX-License-Identifier: BSD-3-Clause
// From a put to packets, and from packets to puts. The parts decide when packets leave and what is
// repeated.
#include "reliable/reliable.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "reliable/link/get_payload.hpp"

namespace unisono::reliable {
namespace {

// Datagrams of one call, and calls of one progress(): a flood must not keep a rank from its steps.
constexpr std::size_t kBatch = 32;
constexpr int kMostBatches = 8;

ReliableOptions completed(ReliableOptions options) {
  UNISONO_CHECK(options.repair_arity >= 1 && options.repair_arity <= kMostArity,
                "arity of repairs");
  UNISONO_CHECK(options.now_ns != nullptr, "the clock of a reliable transport");
  if (options.hosts.ranks() == 0) options.hosts = topology::HostMap::apart(options.ranks);
  return options;
}

PathOptions path_options(const Context& context, std::size_t payload_bytes) {
  const ReliableOptions& options = context.options;
  return {.hosts = options.hosts,
          .full_bytes = wire::kHeaderBytes + payload_bytes,
          .apart = options.gap,
          .ask = options.ask,
          .slowest_ns = options.await.most_ns,
          .seed = options.seed - static_cast<std::uint64_t>(context.rank)};
}

GroupOptions group_options(const Context& context, std::size_t payload_bytes) {
  const ReliableOptions& options = context.options;
  return {.ranks = options.ranks,
          .tree = {options.hosts, options.repair_arity},
          .gap = options.gap,
          .await = options.await,
          .ask = options.ask,
          .linger_ns = options.linger_ns,
          .payload_bytes = payload_bytes};
}

// The length of equal pieces, at most `most` and a multiple of 8, if a third more of them is enough
// for that; otherwise `most`.
std::size_t even_piece(std::size_t bytes, std::size_t most) {
  const std::size_t fewest = (bytes + most - 1) / most;
  const std::size_t limit = fewest + std::max<std::size_t>(1, fewest / 3);
  for (std::size_t pieces = fewest; pieces <= limit; ++pieces) {
    if (bytes % (8 * pieces) == 0) return bytes / pieces;
  }
  return most;
}

bool may_wait(const transport::Put& message) {
  return message.flag != nullptr && message.bytes <= Burst::kMostMessage;
}

// The payload of a message's packets: `most`, or less where it may wait for others. The kernel
// joins datagrams of equal length only (transport/udp/send_batch.hpp).
std::size_t piece_of(const transport::Put& message, int target, std::size_t most,
                     const Outbox& outbox) {
  const bool joins = message.bytes > most && may_wait(message) && outbox.may_gather(target);
  return joins ? even_piece(message.bytes, most) : most;
}

}  // namespace

Reliable::Reliable(std::unique_ptr<transport::Datagrams> datagrams, const ReliableOptions& options)
    : datagrams_(std::move(datagrams)),
      context_(completed(options), datagrams_->rank()),
      capabilities_{
          .name = datagrams_->limits().name, .one_sided = false, .ordered = false, .get = true},
      region_(options.region, options.region_bytes),
      sizes_(*datagrams_, path_options(context_, DatagramSizes::full_payload(datagrams_->limits())),
             options.narrowed),
      links_(options.ranks),
      outbox_(context_, *datagrams_, sizes_),
      control_(context_, links_, outbox_),
      requests_(context_, links_, control_),
      deliveries_(context_, links_, outbox_, control_),
      narrow_(context_, links_, outbox_, control_, sizes_, *datagrams_),
      pieces_(datagrams_->limits().max_payload),
      group_(group_options(context_, DatagramSizes::full_payload(datagrams_->limits())),
             context_.filter, {narrow_, outbox_, control_},
             options.seed + static_cast<std::uint64_t>(context_.rank)) {}

void Reliable::put(const transport::Put& message) {
  if (message.target == context_.rank) return transport::store(message);
  if (message.bytes == 0 && message.flag == nullptr) return;
  context_.now_ns = context_.options.now_ns();
  const std::uint64_t place =
      message.bytes == 0 ? 0 : region_.offset_of(message.place, message.bytes);
  Link& link = links_.of(message.target);
  const std::size_t most =
      piece_of(message, message.target, sizes_.most_payload(message.target), outbox_);
  std::int64_t packets = 0;
  std::size_t done = 0;
  do {
    const std::size_t piece = std::min(most, message.bytes - done);
    wire::Header header = context_.filter.header(
        wire::Kind::put, static_cast<std::uint32_t>(message.target), link.sending.take_number());
    header.position = link.sending.position++;
    header.place = place + done;
    set_acknowledged(header, link.receiving.arrivals.missing());
    link.receiving.told = link.receiving.arrivals.missing();
    const std::span payload(message.source + done, piece);
    done += piece;
    header.value = (message.bytes - done + most - 1) / most;  // packets that follow
    if (done == message.bytes && message.flag != nullptr) {
      header.flag = region_.flag_of(message);
      header.value = message.flag_value;
      link.sending.position = 0;
    }
    deliveries_.submit(link, message.target, header, payload);
    ++packets;
  } while (done < message.bytes);
  if (message.flag == nullptr) return;  // they leave with the packet of the flag, which follows
  may_wait(message) ? outbox_.flush_or_gather(message.target, message.bytes, packets)
                    : outbox_.flush();
}

void Reliable::get(const transport::Get& wanted) {
  context_.now_ns = context_.options.now_ns();
  Link& link = links_.of(wanted.source);
  wire::Header header = context_.filter.header(
      wire::Kind::get, static_cast<std::uint32_t>(wanted.source), link.sending.take_number());
  header.place = wanted.offset;
  header.flag = region_.offset_of(wanted.flag, sizeof *wanted.flag);
  header.value = wanted.flag_value;
  set_acknowledged(header, link.receiving.arrivals.missing());
  link.receiving.told = link.receiving.arrivals.missing();
  const GetPayload payload =
      encode_get({region_.offset_of(wanted.place, wanted.bytes), wanted.bytes});
  deliveries_.submit(link, wanted.source, header, payload);
  // The other side does not wait for it, and would not ask if it were lost.
  deliveries_.confirm(wanted.source);
  outbox_.flush();
}

transport::MulticastReport Reliable::probe_multicast(std::int64_t deadline_ns) {
  if (!datagrams_->limits().multicast) {
    const std::string& note = datagrams_->multicast_note();
    return {.hears_all = false, .note = note.empty() ? "multicast is off" : note};
  }
  transport::MulticastReport report = transport::probe_multicast(
      *datagrams_, context_.filter, context_.options.hosts.firsts(), deadline_ns);
  sizes_.note_group_carrier();
  return report;
}

void Reliable::put_to_all(const transport::Put& message) {
  UNISONO_CHECK(datagrams_->limits().multicast && context_.is_in_group(context_.rank),
                "a multicast over datagrams without");
  const std::uint64_t place =
      message.bytes == 0 ? 0 : region_.offset_of(message.place, message.bytes);
  context_.now_ns = context_.options.now_ns();
  const std::size_t most =
      piece_of(message, transport::kGroup, sizes_.most_payload(transport::kGroup), outbox_);
  std::size_t done = 0;
  std::uint32_t position = 0;
  do {
    const std::size_t piece = std::min(most, message.bytes - done);
    wire::Header header = context_.filter.header(wire::Kind::put, wire::kToGroup, 0);
    header.position = position++;
    header.place = place + done;
    const std::span payload(message.source + done, piece);
    done += piece;
    header.value = (message.bytes - done + most - 1) / most;
    if (done == message.bytes && message.flag != nullptr) {
      header.flag = region_.flag_of(message);
      header.value = message.flag_value;
    }
    group_.put(header, payload, context_.now_ns);
  } while (done < message.bytes);
  may_wait(message) ? outbox_.flush_or_gather(transport::kGroup, message.bytes, position)
                    : outbox_.flush();
}

void Reliable::probe_path(int rank) {
  context_.now_ns = context_.options.now_ns();
  narrow_.search(rank);
}

int Reliable::progress(bool receives) {
  context_.now_ns = context_.options.now_ns();
  const Arrived before = arrived();
  std::array<transport::Incoming, kBatch> batch;
  int received = 0;
  for (int i = 0; receives && i < kMostBatches; ++i) {
    const std::size_t count = datagrams_->receive(batch);
    for (std::size_t d = 0; d < count; ++d) {
      const wire::Parsed packet = context_.filter.open(batch[d].bytes);
      if (packet.drop == wire::Drop::none) take(packet);
    }
    received += static_cast<int>(count);
    if (count < kBatch) break;
  }
  moderation_.note(context_.now_ns, arrived().packets - before.packets,
                   arrived().messages != before.messages, arrived().following);
  deliveries_.drain_backlogs();
  links_.look_at_timers([this](Link& link, int rank) {
    const bool lacks = requests_.look_at_timer(link, rank);
    const bool asks = deliveries_.look_at_timer(link, rank);
    return lacks || asks;
  });
  group_.look_at_timers(context_.now_ns);
  narrow_.send_probes();
  outbox_.flush_after_look();
  return received;
}

void Reliable::take(const wire::Parsed& packet) {
  const auto kind = static_cast<wire::Kind>(packet.header.kind);
  if (kind == wire::Kind::piece) {
    // The sender of the pieces need not be trusted: the packet in them has a tag of its own.
    const std::span<const std::byte> bytes = pieces_.take(packet.header, packet.payload);
    if (bytes.empty()) return;
    const wire::Parsed whole = context_.filter.open(bytes);
    const bool is_piece = static_cast<wire::Kind>(whole.header.kind) == wire::Kind::piece;
    if (whole.drop == wire::Drop::none && !is_piece) take(whole);
    return;
  }
  if (packet.header.target == wire::kToGroup) return take_multicast(packet);
  Link& link = links_.of(static_cast<int>(packet.header.sender));
  if (kind == wire::Kind::put || kind == wire::Kind::get) return take_numbered(link, packet);
  if (Control::take(link, packet.header)) return take_control(link, packet.header);
  ++context_.counts.duplicates;
}

void Reliable::take_numbered(Link& link, const wire::Parsed& packet) {
  const wire::Header& header = packet.header;
  const auto sender = static_cast<int>(header.sender);
  const bool is_get = static_cast<wire::Kind>(header.kind) == wire::Kind::get;
  if (!(is_get ? region_.fits_get(packet) : region_.fits_put(packet))) {
    ++context_.counts.misplaced;
    return;
  }
  Arrivals& arrivals = link.receiving.arrivals;
  const std::uint64_t missing = arrivals.missing();
  switch (arrivals.take(header.sequence)) {
    case Arrivals::Taken::seen:
      ++context_.counts.duplicates;
      return;
    case Arrivals::Taken::beyond:
      ++context_.counts.beyond;
      return;
    case Arrivals::Taken::fresh:
      break;
  }
  Control::note_heard(link);
  deliveries_.acknowledge(link, link.sending.complete_number(acknowledged_in(header)));
  if (is_get) {
    // Offsets are the same in the memory of both, since all regions have the same layout.
    const GetTarget target = *decode_get(packet.payload);
    answers_->put({.target = sender,
                   .source = region_.at(header.place),
                   .place = region_.at(target.place),
                   .bytes = static_cast<std::size_t>(target.bytes),
                   .flag = reinterpret_cast<std::uint64_t*>(region_.at(header.flag)),
                   .flag_value = header.value});
  } else {
    region_.write(packet);
    const WaitingFlag* const flag =
        link.receiving.note(header.sequence, header.position, header.flag, header.value);
    if (flag != nullptr) region_.raise(flag->flag, flag->value);
  }
  requests_.note_arrival(link, sender, missing != arrivals.missing());
}

void Reliable::take_control(Link& link, const wire::Header& header) {
  const auto sender = static_cast<int>(header.sender);
  const auto kind = static_cast<wire::Kind>(header.kind);
  const auto is_child = [&] { return group_.is_child(static_cast<int>(header.origin), sender); };
  if (kind == wire::Kind::probe) {
    NarrowPaths::take_probe(link, header);
  } else if (kind == wire::Kind::answer) {
    if (is_child()) group_.take_answer(header, context_.now_ns);
  } else if (kind == wire::Kind::nack) {
    // It may have nothing to repeat. The status also tells the asking rank that this one is there.
    const bool is_for_group = header.flag != 0;
    const bool repeats_payload = is_for_group
                                     ? is_child() && group_.take_request(header, context_.now_ns)
                                     : deliveries_.take_request(link, header);
    if (repeats_payload) narrow_.search(sender);
    control_.send_status(link, sender, false);
  } else if (kind == wire::Kind::status) {
    deliveries_.acknowledge(link, header.value);
    if (header.hop != 0) sizes_.narrow_group(header.hop);
    requests_.expect_until(link, sender, header.place + 1);
    if (header.position != kWantsAnswer) return narrow_.take_report(sender, header);
    if (header.flag != 0) link.probes.note_question(static_cast<std::uint16_t>(header.flag));
    control_.send_status(link, sender, false);
    ++context_.counts.answered;
  }
}

// From its origin, or repeated by another rank as it was.
void Reliable::take_multicast(const wire::Parsed& packet) {
  const wire::Header& header = packet.header;
  if (header.origin != header.sender || !context_.is_in_group(static_cast<int>(header.origin)) ||
      !context_.is_in_group(context_.rank)) {
    return;
  }
  const auto kind = static_cast<wire::Kind>(header.kind);
  if (kind == wire::Kind::query) return group_.take_query(header, context_.now_ns);
  if (kind != wire::Kind::put) return;
  if (!region_.fits_put(packet)) {
    ++context_.counts.misplaced;
    return;
  }
  const Group::Taken taken = group_.take_put(packet, context_.now_ns);
  if (!taken.fresh) return;
  region_.write(packet);
  if (taken.flag != nullptr) region_.raise(taken.flag->flag, taken.flag->value);
}

void Reliable::awaits(int rank) {
  if (rank != context_.rank) requests_.await(rank);
}

std::int64_t Reliable::silence_ns(int rank) const {
  if (sizes_.paths().is_blocked(rank)) return std::numeric_limits<std::int64_t>::max();
  return control_.silence_ns(rank);
}

std::int64_t Reliable::next_deadline_ns() const {
  return std::min(
      {links_.next_deadline_ns(), group_.next_deadline_ns(), sizes_.paths().next_deadline_ns()});
}

void Reliable::forget(int rank, Departure how) {
  if (!deliveries_.has_forgotten(rank)) group_.forget(rank, how, context_.now_ns);
  sizes_.paths().forget(rank);
  deliveries_.forget(rank);
}

bool Reliable::settle() {
  progress();
  deliveries_.ask_unsettled();
  group_.ask(context_.now_ns);
  outbox_.flush();
  return is_settled();
}

void Reliable::send_last_statuses() {
  links_.for_each([this](Link& link, int rank) {
    if (link.receiving.told != link.receiving.arrivals.missing()) {
      control_.send_status(link, rank, false);
    }
  });
  outbox_.flush();
}

}  // namespace unisono::reliable
