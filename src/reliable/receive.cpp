// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of Reliable: what has come, what is asked of this rank, and when it asks
// others.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>

#include "reliable/get_payload.hpp"
#include "reliable/reliable.hpp"

namespace unisono::reliable {
namespace {

// Datagrams of one call, and calls of one progress(): a flood must not keep a rank from its steps.
constexpr std::size_t kBatch = 32;
constexpr int kMostBatches = 8;
// Packets that wait for room and are not kept: of what is dropped, timers make new ones.
constexpr std::size_t kMostLoose = 1024;

bool wants_answer(const wire::Header& header) {
  const auto kind = static_cast<wire::Kind>(header.kind);
  return kind == wire::Kind::nack ||
         (kind == wire::Kind::status && header.position == kWantsAnswer);
}

}  // namespace

int Reliable::progress() {
  now_ns_ = options_.now_ns();
  const Arrived before = arrived_;
  const int received = receive_all();
  moderation_.note(now_ns_, arrived_.packets - before.packets, arrived_.messages != before.messages,
                   arrived_.following);
  if (!backlogged_.empty()) drain_backlogs();
  if (!watched_.empty()) look_at_timers();
  group_.look_at_timers(now_ns_);
  while (const auto round = paths_.due(now_ns_)) send_probes(*round);
  if (!loose_.empty() || !queue_.empty()) flush();
  return received;
}

int Reliable::receive_all() {
  std::array<transport::Incoming, kBatch> batch;
  int received = 0;
  for (int i = 0; i < kMostBatches; ++i) {
    const std::size_t count = datagrams_->receive(batch);
    for (std::size_t d = 0; d < count; ++d) {
      const wire::Parsed packet = gate_.open(batch[d].bytes);
      if (packet.drop == wire::Drop::none) handle(packet);
    }
    received += static_cast<int>(count);
    if (count < kBatch) break;
  }
  return received;
}

void Reliable::handle(const wire::Parsed& packet) {
  const wire::Header& header = packet.header;
  const int sender = static_cast<int>(header.sender);
  const auto kind = static_cast<wire::Kind>(header.kind);
  if (kind == wire::Kind::piece) return take_piece(packet);
  if (header.target == wire::kToGroup) return handle_group(packet);
  Link& link = link_to(sender);
  if (kind == wire::Kind::put || kind == wire::Kind::get) {
    return handle_numbered(link, sender, packet);
  }
  if (link.control_seen.take(header.sequence) != wire::Arrival::fresh) {
    ++counts_.duplicates;
    return;
  }
  link.asked_ns = 0;
  if (kind == wire::Kind::probe) {
    link.probes.note_probe(header.position, static_cast<std::uint16_t>(header.value));
  } else if (kind == wire::Kind::status) {
    handle_status(link, sender, header);
  } else if (kind == wire::Kind::answer) {
    if (group_.is_child(static_cast<int>(header.origin), sender)) {
      group_.take_answer(header, now_ns_);
    }
  } else if (kind == wire::Kind::nack && header.flag == 0) {
    handle_nack(link, sender, header);
  } else if (kind == wire::Kind::nack) {
    handle_group_nack(link, sender, header);
  }
}

// A repetition bears its origin's name, and may have nothing to repeat. It also tells the asking
// rank that this one is there.
void Reliable::handle_group_nack(Link& link, int sender, const wire::Header& header) {
  const bool is_child = group_.is_child(static_cast<int>(header.origin), sender);
  if (is_child && group_.take_nack(header, now_ns_)) paths_.search(sender, now_ns_);
  send_status(link, sender, false);
}

// From its origin, or repeated by another rank as it was.
void Reliable::handle_group(const wire::Parsed& packet) {
  const wire::Header& header = packet.header;
  if (header.origin != header.sender || !group_.has(static_cast<int>(header.origin)) ||
      !group_.has(datagrams_->rank())) {
    return;
  }
  const auto kind = static_cast<wire::Kind>(header.kind);
  if (kind == wire::Kind::query) return group_.take_query(header, now_ns_);
  if (kind != wire::Kind::put) return;
  if (!place_is_valid(packet)) {
    ++counts_.misplaced;
    return;
  }
  const Group::Taken taken = group_.take_put(packet, now_ns_);
  if (!taken.fresh) return;
  apply(packet);
  if (taken.flag != nullptr) raise(*taken.flag);
}

void Reliable::apply(const wire::Parsed& packet) {
  ++arrived_.packets;
  arrived_.following = packet.header.flag == wire::kNoPlace ? packet.header.value : 0;
  if (packet.payload.empty()) return;
  std::byte* const place = options_.region + packet.header.place;
  std::uint64_t word;
  if (packet.payload.size() == sizeof word && packet.header.place % sizeof word == 0) {
    // Other threads may look at it meanwhile, as at a rank's state.
    std::memcpy(&word, packet.payload.data(), sizeof word);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place))
        .store(word, std::memory_order_relaxed);
    return;
  }
  std::memcpy(place, packet.payload.data(), packet.payload.size());
}

bool Reliable::place_is_valid(const wire::Parsed& packet) const {
  const std::uint64_t size = options_.region_bytes;
  const wire::Header& header = packet.header;
  const bool payload_fits = packet.payload.empty() ||
                            (header.place <= size && packet.payload.size() <= size - header.place);
  const bool flag_fits =
      header.flag == wire::kNoPlace ||
      (header.flag % 8 <= wire::kForward && size >= 8 && header.flag - header.flag % 8 <= size - 8);
  return payload_fits && flag_fits;
}

bool Reliable::get_is_valid(const wire::Parsed& packet) const {
  const std::uint64_t size = options_.region_bytes;
  const wire::Header& header = packet.header;
  const auto target = decode_get(packet.payload);
  const auto fits = [size](std::uint64_t place, std::uint64_t bytes) {
    return place <= size && bytes <= size - place;
  };
  return target && target->bytes != 0 && fits(header.place, target->bytes) &&
         fits(target->place, target->bytes) && header.flag % 8 == 0 && fits(header.flag, 8);
}

// Sends what another rank requests of this one's memory. The offset is the same in the memory of
// both, since all are laid out alike.
void Reliable::answer_get(int sender, const wire::Parsed& packet) {
  const wire::Header& header = packet.header;
  const GetTarget target = *decode_get(packet.payload);
  put({.target = sender,
       .source = options_.region + header.place,
       .place = options_.region + target.place,
       .bytes = static_cast<std::size_t>(target.bytes),
       .flag = reinterpret_cast<std::uint64_t*>(options_.region + header.flag),
       .flag_value = header.value});
}

void Reliable::handle_numbered(Link& link, int sender, const wire::Parsed& packet) {
  const wire::Header& header = packet.header;
  const bool is_get = static_cast<wire::Kind>(header.kind) == wire::Kind::get;
  if (!(is_get ? get_is_valid(packet) : place_is_valid(packet))) {
    ++counts_.misplaced;
    return;
  }
  Arrivals& arrivals = link.receiving.arrivals;
  const std::uint64_t missing = arrivals.missing();
  switch (arrivals.take(header.sequence)) {
    case Arrivals::Taken::seen:
      ++counts_.duplicates;
      return;
    case Arrivals::Taken::beyond:
      ++counts_.beyond;
      return;
    case Arrivals::Taken::fresh:
      break;
  }
  link.asked_ns =
      0;  // not for a packet that somebody plays again: it does not show that the peer lives
  acknowledge(link, link.sending.complete_number(acknowledged_in(header)));
  if (is_get) {
    answer_get(sender, packet);
  } else {
    apply(packet);
    if (const WaitingFlag* const flag =
            link.receiving.note(header.sequence, header.position, header.flag, header.value)) {
      raise(*flag);
    }
  }
  note_gap(link, sender, missing != arrivals.missing());
}

// After something has come. A waiting rank begins to count anew. A gap has its own time, which
// other arrivals do not put off.
void Reliable::note_gap(Link& link, int rank, bool moved) {
  ReceivingSide& receiving = link.receiving;
  receiving.awaited = false;
  const bool gap = receiving.arrivals.has_gap();
  if (gap && receiving.lacks_gap && !moved) return;
  receiving.lack.stop();
  receiving.lacks_gap = gap;
  if (!gap) return;
  receiving.lack.start(now_ns_, options_.gap, prng_);
  watch(link, rank);
}

void Reliable::raise(const WaitingFlag& flag) {
  ++arrived_.messages;
  const bool forward = (flag.flag & wire::kForward) != 0;
  std::byte* const word = options_.region + (flag.flag & ~wire::kForward);
  transport::raise(reinterpret_cast<std::uint64_t*>(word), flag.value, forward);
}

// All before `place` has come there; of the others those that were sent, and not just now. The peer
// hears in any case that somebody is there, even if all that is repeated vanishes on its way.
void Reliable::handle_nack(Link& link, int sender, const wire::Header& header) {
  ++counts_.nacks_heard;
  if (header.hop == 0) acknowledge(link, header.place);
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if ((header.value >> i & 1) == 0) continue;
    const std::uint32_t index = link.sending.kept(header.place + i);
    if (index == PacketPool::kNone) continue;
    KeptPacket& packet = pool_.at(index);
    if (packet.queued) continue;
    if (now_ns_ - packet.sent_ns < options_.linger_ns) {
      ++counts_.lingering;
      continue;
    }
    packet.queued = true;
    queue_.push_back(index);
    ++counts_.repeated;
    if (packet.payload_bytes != 0) paths_.search(sender, now_ns_);
  }
  send_status(link, sender, false);
}

void Reliable::handle_status(Link& link, int sender, const wire::Header& header) {
  acknowledge(link, header.value);
  if (header.hop != 0) narrow_group(header.hop);
  link.receiving.arrivals.expect_until(header.place + 1);
  if (link.receiving.arrivals.has_gap() && !link.receiving.lacks_gap) note_gap(link, sender, true);
  if (header.position != kWantsAnswer) return take_report(sender, header);
  if (header.flag != 0) link.probes.note_question(static_cast<std::uint16_t>(header.flag));
  send_status(link, sender, false);
  ++counts_.answered;
}

void Reliable::awaits(int rank) {
  if (rank == datagrams_->rank()) return;
  Link& link = link_to(rank);
  link.receiving.awaited = true;
  if (link.receiving.lack.runs()) return;
  link.receiving.lack.start(now_ns_, options_.await, prng_);
  watch(link, rank);
}

void Reliable::watch(Link& link, int rank) {
  if (link.watched) return;
  link.watched = true;
  watched_.push_back(rank);
}

void Reliable::look_at_timers() {
  std::erase_if(watched_, [this](int rank) {
    Link& link = link_to(rank);
    link.watched = look_at(link, rank);
    return !link.watched;
  });
}

// Whether one of its timers still runs.
bool Reliable::look_at(Link& link, int rank) {
  ReceivingSide& receiving = link.receiving;
  const bool gap = receiving.arrivals.has_gap();
  if (receiving.lack.is_due(now_ns_)) {
    if (gap || receiving.awaited) {
      send_nack(link, rank);
      receiving.awaited = false;  // whoever still waits says so again
      receiving.lack.again(now_ns_, gap ? options_.gap : options_.await, prng_);
    } else {
      receiving.lack.stop();
    }
  }
  RetryTimer& ask = link.sending.ask;
  if (ask.is_due(now_ns_)) {
    if (link.sending.is_settled()) {
      ask.stop();
    } else {
      send_status(link, rank, true);
      ask.again(now_ns_, options_.ask, prng_);
    }
  }
  return receiving.lack.runs() || ask.runs();
}

// One request for each 64 numbers in which something is missing. The last one includes what may
// follow, because the end of what was sent is not known here.
void Reliable::send_nack(Link& link, int rank) {
  const Arrivals& arrivals = link.receiving.arrivals;
  std::uint64_t from = arrivals.missing();
  do {
    wire::Header header = gate_.header(wire::Kind::nack, static_cast<std::uint32_t>(rank), 0);
    header.place = from;
    header.value = arrivals.mask(from);
    header.flag = 0;
    // Only the first one says that all before has come.
    header.hop = from == arrivals.missing() ? 0 : 1;
    if (header.value != 0) {
      send_control(rank, header);
      ++counts_.nacks;
    }
    from += kMaskNumbers;
  } while (wire::is_before(from, arrivals.end()));
  link.receiving.told = arrivals.missing();
}

wire::Header Reliable::status_header(Link& link, int rank) const {
  wire::Header header = gate_.header(wire::Kind::status, static_cast<std::uint32_t>(rank), 0);
  header.place = link.sending.unsent() - 1;
  header.value = link.receiving.arrivals.missing();
  link.receiving.told = header.value;
  return header;
}

void Reliable::send_status(Link& link, int rank, bool ask) {
  wire::Header header = status_header(link, rank);
  header.position = ask ? kWantsAnswer : 0;
  if (ask) ++counts_.asked;
  if (!ask) header.flag = link.probes.word();
  send_control(rank, header);
}

void Reliable::send_control(int target, wire::Header header) {
  Link& link = link_to(target);
  if (wants_answer(header)) {
    const bool anew = link.asked_ns == 0 || now_ns_ - link.asked_again_ns > options_.lull_ns;
    if (anew) link.asked_ns = now_ns_;
    link.asked_again_ns = now_ns_;
  }
  header.sequence = link.control_number++;
  send_packet(target, gate_.seal(header, {}), {});
}

void Reliable::send_packet(int target, const wire::Envelope& envelope,
                           std::span<const std::byte> payload) {
  if (!payload.empty() && target != transport::kGroup) {
    tell_origin(target, envelope, payload.size());
  }
  if (is_too_long(target, payload.size())) return send_in_pieces(target, envelope, payload);
  if (loose_.size() >= kMostLoose) {
    loose_.pop_front();
    ++counts_.unsent;
  }
  loose_.push_back({target, envelope, {payload.begin(), payload.end()}});
}

std::int64_t Reliable::silence_ns(int rank) const {
  const auto& link = links_[static_cast<std::size_t>(rank)];
  if (paths_.is_blocked(rank)) return std::numeric_limits<std::int64_t>::max();
  return link == nullptr || link->asked_ns == 0 ? 0 : link->asked_again_ns - link->asked_ns;
}

std::int64_t Reliable::next_deadline_ns() const {
  std::int64_t soonest = std::min(group_.next_deadline_ns(), paths_.next_deadline_ns());
  for (const int rank : watched_) {
    const Link& link = *links_[static_cast<std::size_t>(rank)];
    for (const RetryTimer* timer : {&link.receiving.lack, &link.sending.ask}) {
      if (timer->runs()) soonest = std::min(soonest, timer->deadline_ns());
    }
  }
  return soonest;
}

}  // namespace unisono::reliable
