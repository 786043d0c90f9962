// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.hpp"
#include "transport/datagrams.hpp"

namespace unisono::reliable {
namespace {

// Requests of children for packets that this rank lacks itself. More are forgotten: they ask again.
constexpr std::size_t kMostWanted = 4 * kWindow;

}  // namespace

std::optional<std::uint64_t> Answers::worst(std::span<const int> children,
                                            std::uint64_t own) const {
  std::uint64_t worst = own;
  for (const int child : children) {
    const auto said = std::ranges::find(all_, child, &std::pair<int, std::uint64_t>::first);
    if (said == all_.end()) return std::nullopt;
    if (wire::is_before(said->second, worst)) worst = said->second;
  }
  return worst;
}

void KeptPackets::keep(std::uint64_t number, const wire::Envelope& envelope,
                       std::span<const std::byte> payload, std::int64_t now_ns) {
  Packet& packet = packets_[number % packets_.size()];
  packet = {};
  packet.number = number;
  packet.valid = true;
  packet.envelope = envelope;
  packet.bytes = static_cast<std::uint32_t>(payload.size());
  packet.sent_ns.fill(now_ns);  // to all of them at once
  if (payload.empty()) return;
  std::memcpy(bytes_.data() + number % packets_.size() * payload_bytes_, payload.data(),
              payload.size());
}

Group::Group(const GroupOptions& options, const wire::Gate& gate, GroupPort& port,
             std::uint64_t seed)
    : options_(options),
      gate_(gate),
      port_(port),
      prng_(seed),
      sent_(options.window, options.payload_bytes),
      streams_(static_cast<std::size_t>(options.ranks)) {
  UNISONO_CHECK(options.window >= 2 && options.window <= kWindow, "window of a group");
}

Group::Stream& Group::stream_of(int origin) {
  auto& stream = streams_[static_cast<std::size_t>(origin)];
  if (stream == nullptr) stream = std::make_unique<Stream>(options_);
  return *stream;
}

void Group::put(wire::Header header, std::span<const std::byte> payload, std::int64_t now_ns) {
  header.sequence = next_++;
  const WaitingPacket packet{gate_.seal(header, payload), {payload.begin(), payload.end()}};
  if (backlog_.empty() && unsent_ - lacking_ < options_.window) {
    send_out(packet, now_ns);
  } else {
    ++counts_.waited;
    backlog_.push_back(packet);
  }
  if (unsent_ - lacking_ >= options_.window / 2) ask(now_ns);
}

void Group::send_out(const WaitingPacket& packet, std::int64_t now_ns) {
  sent_.keep(unsent_++, packet.envelope, packet.payload, now_ns);
  ++counts_.packets;
  port_.send_packet(transport::kGroup, packet.envelope, packet.payload);
}

Group::Taken Group::take_put(const wire::Parsed& packet, std::int64_t now_ns) {
  const int origin = static_cast<int>(packet.header.origin);
  Stream& stream = stream_of(origin);
  Arrivals& arrivals = stream.receiving.arrivals;
  const std::uint64_t number = packet.header.sequence;
  const std::uint64_t missing = arrivals.missing();
  switch (arrivals.take(number)) {
    case Arrivals::Taken::seen:
      ++counts_.duplicates;
      pass_on(stream, packet);  // fetched once more for a child, because it was kept no longer
      return {};
    case Arrivals::Taken::beyond:
      ++counts_.beyond;
      return {};
    case Arrivals::Taken::fresh:
      break;
  }
  if (!options_.tree.is_leaf(origin, rank())) {
    stream.kept.keep(number, gate_.seal(packet.header, packet.payload), packet.payload, now_ns);
    forget_expired(stream, now_ns);
    pass_on(stream, packet);
  }
  note_gap(stream, missing != arrivals.missing(), now_ns);
  return {true, stream.receiving.note(number, packet.header.position, packet.header.flag,
                                      packet.header.value)};
}

// To the children that have asked while this rank did not have it.
void Group::pass_on(Stream& stream, const wire::Parsed& packet) {
  std::erase_if(stream.wanted, [&](const Wanted& wanted) {
    if (wanted.number != packet.header.sequence) return false;
    ++counts_.repaired;
    port_.send_packet(wanted.child, gate_.seal(packet.header, packet.payload), packet.payload);
    return true;
  });
}

void Group::forget_expired(Stream& stream, std::int64_t now_ns) const {
  std::erase_if(stream.wanted,
                [now_ns](const Wanted& wanted) { return wanted.expires_ns < now_ns; });
}

void Group::repair(KeptPackets& kept, KeptPackets::Packet& packet, int origin, int child,
                   std::int64_t now_ns) {
  const auto number = static_cast<std::size_t>(options_.tree.number_of(origin, child));
  std::int64_t& sent_ns = packet.sent_ns[number];
  if (now_ns - sent_ns < options_.linger_ns) {
    ++counts_.lingering;
    return;
  }
  sent_ns = now_ns;
  ++counts_.repaired;
  port_.send_packet(child, packet.envelope, kept.payload(packet));
}

bool Group::is_child(int origin, int sender) const {
  return has(origin) && has(sender) && has(rank()) && origin != sender &&
         options_.tree.parent(origin, sender) == rank();
}

void Group::forget(int rank, std::int64_t now_ns) {
  options_.tree.forget(rank);
  if (ask_.runs()) look_at_answers(now_ns);
}

void Group::take_nack(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  const int child = static_cast<int>(header.sender);
  const bool own = origin == rank();
  Stream* const stream = own ? nullptr : &stream_of(origin);
  KeptPackets& kept = own ? sent_ : stream->kept;
  bool has_some = false;
  bool lacks = false;
  std::uint64_t gone = 0;
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if ((header.value >> i & 1) == 0) continue;
    const std::uint64_t number = header.place + i;
    if (KeptPackets::Packet* const packet = kept.find(number)) {
      repair(kept, *packet, origin, child, now_ns);
      has_some = true;
    } else if (!own) {
      const bool known = want(*stream, number, child, now_ns);
      if (stream->receiving.arrivals.has(number)) {
        gone |= std::uint64_t{1} << i;
      } else if (known || !has_some) {  // what follows the last that is known may not exist
        lacks = true;
      }
    }
  }
  // Kept no longer, because too much has come since: the parent has it still, or the origin, which
  // drops nothing that somebody lacks.
  if (gone != 0) {
    ++counts_.gone;
    send_nack(origin, header.place, gone);
  }
  // Up at once: the child has waited its delay already. Requests that meet here are one.
  if (!lacks || now_ns - stream->passed_up_ns < options_.linger_ns) return;
  stream->passed_up_ns = now_ns;
  ++counts_.passed_up;
  send_nacks(*stream, origin);
}

// Notes that the child gets the packet if it comes; whether it was sent, as far as is known here.
// If not, it may still be, and will reach the child by itself, so that is soon forgotten.
bool Group::want(Stream& stream, std::uint64_t number, int child, std::int64_t now_ns) const {
  forget_expired(stream, now_ns);
  const bool known = wire::is_before(number, stream.receiving.arrivals.end());
  const std::int64_t expires_ns =
      now_ns + (known ? options_.await.most_ns : options_.await.first_ns);
  for (Wanted& wanted : stream.wanted) {
    if (wanted.number != number || wanted.child != child) continue;
    wanted.expires_ns = expires_ns;
    return known;
  }
  if (stream.wanted.size() < kMostWanted) stream.wanted.push_back({number, child, expires_ns});
  return known;
}

void Group::note_gap(Stream& stream, bool moved, std::int64_t now_ns) {
  ReceivingSide& receiving = stream.receiving;
  receiving.awaited = false;
  const bool gap = receiving.arrivals.has_gap();
  if (gap && receiving.lacks_gap && !moved) return;
  receiving.lack.stop();
  receiving.lacks_gap = gap;
  if (gap) receiving.lack.start(now_ns, options_.gap, prng_);
}

void Group::awaits(int origin, std::int64_t now_ns) {
  if (origin == rank()) return;
  ReceivingSide& receiving = stream_of(origin).receiving;
  receiving.awaited = true;
  receiving.lack.start(now_ns, options_.await, prng_);
}

void Group::send_nacks(const Stream& stream, int origin) {
  const Arrivals& arrivals = stream.receiving.arrivals;
  std::uint64_t from = arrivals.missing();
  do {
    send_nack(origin, from, arrivals.mask(from));
    from += kMaskNumbers;
  } while (wire::is_before(from, arrivals.end()));
}

void Group::send_nack(int origin, std::uint64_t place, std::uint64_t mask) {
  if (mask == 0) return;
  const int parent = options_.tree.parent(origin, rank());
  wire::Header header = gate_.header(wire::Kind::nack, static_cast<std::uint32_t>(parent), 0);
  header.origin = static_cast<std::uint32_t>(origin);
  header.flag = 1;
  header.place = place;
  header.value = mask;
  port_.send_control(parent, header);
  ++counts_.nacks;
}

void Group::ask(std::int64_t now_ns) {
  if (ask_.runs() || is_settled()) return;
  if (options_.tree.is_leaf(rank(), rank())) return note_reached(unsent_, now_ns);
  send_query();
  ask_.start(now_ns, options_.ask, prng_);
}

// A new question each time, so that late answers to an old one are told apart.
void Group::send_query() {
  ++query_;
  ++counts_.queries;
  answers_.clear();
  wire::Header header = gate_.header(wire::Kind::query, wire::kToGroup, query_);
  header.place = 0;        // this rank's multicasts
  header.value = unsent_;  // which also tells who lost the last packet
  port_.send_packet(transport::kGroup, gate_.seal(header, {}), {});
}

void Group::take_query(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  Stream& stream = stream_of(origin);
  if (!wire::is_before(stream.query, header.sequence)) return;  // an old one
  stream.query = header.sequence;
  stream.answered = false;
  stream.answers.clear();
  stream.receiving.arrivals.expect_until(header.value);
  if (stream.receiving.arrivals.has_gap() && !stream.receiving.lacks_gap) {
    note_gap(stream, true, now_ns);
  }
  answer_if_complete(stream, origin);
}

void Group::take_answer(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  const int child = static_cast<int>(header.sender);
  if (origin == rank()) {
    if (header.place != query_) return;
    answers_.note(child, header.value);
    look_at_answers(now_ns);
    return;
  }
  Stream& stream = stream_of(origin);
  // The child may have heard the question, and this rank not yet.
  if (wire::is_before(stream.query, header.place)) {
    stream.query = header.place;
    stream.answered = false;
    stream.answers.clear();
  }
  if (header.place != stream.query) return;
  stream.answers.note(child, header.value);
  answer_if_complete(stream, origin);
}

void Group::look_at_answers(std::int64_t now_ns) {
  const auto worst = answers_.worst(options_.tree.children(rank(), rank()), unsent_);
  if (worst) note_reached(*worst, now_ns);
}

// The worst of this rank and those below it.
void Group::answer_if_complete(Stream& stream, int origin) {
  if (stream.answered) return;
  const auto worst = stream.answers.worst(options_.tree.children(origin, rank()),
                                          stream.receiving.arrivals.missing());
  if (!worst) return;
  stream.answered = true;
  ++counts_.answers;
  const int parent = options_.tree.parent(origin, rank());
  wire::Header header = gate_.header(wire::Kind::answer, static_cast<std::uint32_t>(parent), 0);
  header.origin = static_cast<std::uint32_t>(origin);
  header.place = stream.query;
  header.value = *worst;
  port_.send_control(parent, header);
}

void Group::note_reached(std::uint64_t number, std::int64_t now_ns) {
  if (wire::is_before(unsent_, number)) return;  // never sent: not to be believed
  // Without news the timer goes on, so that the same question comes less and less often.
  if (!wire::is_before(lacking_, number)) return;
  lacking_ = number;
  ask_.stop();
  while (!backlog_.empty() && unsent_ - lacking_ < options_.window) {
    send_out(backlog_.front(), now_ns);
    backlog_.pop_front();
  }
  if (unsent_ - lacking_ >= options_.window / 2) ask(now_ns);
}

void Group::look_at_timers(std::int64_t now_ns) {
  for (std::size_t origin = 0; origin < streams_.size(); ++origin) {
    if (streams_[origin] == nullptr) continue;
    ReceivingSide& receiving = streams_[origin]->receiving;
    if (!receiving.lack.is_due(now_ns)) continue;
    const bool gap = receiving.arrivals.has_gap();
    if (!gap && !receiving.awaited) {
      receiving.lack.stop();
      continue;
    }
    send_nacks(*streams_[origin], static_cast<int>(origin));
    receiving.awaited = false;
    receiving.lack.again(now_ns, gap ? options_.gap : options_.await, prng_);
  }
  if (!ask_.is_due(now_ns)) return;
  if (is_settled()) {
    ask_.stop();
    return;
  }
  send_query();
  ask_.again(now_ns, options_.ask, prng_);
}

std::int64_t Group::next_deadline_ns() const {
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const auto& stream : streams_) {
    if (stream != nullptr && stream->receiving.lack.runs()) {
      soonest = std::min(soonest, stream->receiving.lack.deadline_ns());
    }
  }
  if (ask_.runs()) soonest = std::min(soonest, ask_.deadline_ns());
  return soonest;
}

}  // namespace unisono::reliable
