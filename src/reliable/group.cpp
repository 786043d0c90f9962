// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "transport/datagrams.hpp"

namespace unisono::reliable {
namespace {

// Requests of children for packets that this rank lacks itself. More are forgotten: they ask again.
constexpr std::size_t kMostWanted = 4 * kWindow;
// `hop` of a put or query to the group that goes to one rank by unicast.
constexpr std::uint16_t kByUnicast = 1;
// `position` of a request or an answer: the origin's multicasts do not reach the sender.
constexpr std::uint32_t kUnreached = 1;

}  // namespace

void Answers::note(int child, std::uint64_t value) {
  const auto said = std::ranges::find(all_, child, &std::pair<int, std::uint64_t>::first);
  if (said == all_.end()) {
    all_.emplace_back(child, value);
  } else if (wire::is_before(said->second, value)) {
    said->second = value;
  }
}

const std::uint64_t* Answers::find(int child) const {
  const auto said = std::ranges::find(all_, child, &std::pair<int, std::uint64_t>::first);
  return said == all_.end() ? nullptr : &said->second;
}

std::optional<std::uint64_t> Answers::worst(std::span<const int> children,
                                            std::uint64_t own) const {
  std::uint64_t worst = own;
  for (const int child : children) {
    const std::uint64_t* const said = find(child);
    if (said == nullptr) return std::nullopt;
    if (wire::is_before(*said, worst)) worst = *said;
  }
  return worst;
}

bool MulticastWatch::note_unicast(std::int64_t now_ns, std::int64_t apart_ns) {
  if (lost_ || now_ns - missed_ns_ < apart_ns) return false;
  missed_ns_ = now_ns;
  lost_ = ++missed_ == kMostMissed;
  return lost_;
}

std::vector<int> Answers::missing(std::vector<int> children) const {
  std::erase_if(children, [this](int child) { return find(child) != nullptr; });
  return children;
}

void KeptPackets::keep(const wire::Header& header, std::span<const std::byte> payload,
                       std::int64_t now_ns) {
  if (packets_.empty()) {
    packets_.resize(most_);
    bytes_.resize(most_ * payload_bytes_);
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
  if (backlog_.empty() && unsent_ - lacking_ < options_.window) {
    send_out(header, payload, now_ns);
  } else {
    ++counts_.waited;
    backlog_.push_back({header, {payload.begin(), payload.end()}});
  }
  if (unsent_ - lacking_ >= options_.window / 2) ask(now_ns);
}

void Group::send_out(const wire::Header& header, std::span<const std::byte> payload,
                     std::int64_t now_ns) {
  ++unsent_;
  sent_.keep(header, payload, now_ns);
  ++counts_.packets;
  port_.send_packet(transport::kGroup, gate_.seal(header, payload), payload);
  counts_.passed_on += unreached_.size();
  send_by_unicast(unreached_, header, payload);
}

void Group::send_by_unicast(std::span<const int> children, wire::Header header,
                            std::span<const std::byte> payload) {
  if (children.empty()) return;
  header.hop = kByUnicast;
  const wire::Envelope envelope = gate_.seal(header, payload);
  for (const int child : children) {
    if (!options_.tree.has_left(child)) port_.send_packet(child, envelope, payload);
  }
}

Group::Taken Group::take_put(const wire::Parsed& packet, std::int64_t now_ns) {
  const int origin = static_cast<int>(packet.header.origin);
  Stream& stream = stream_of(origin);
  Arrivals& arrivals = stream.receiving.arrivals;
  const std::uint64_t number = packet.header.sequence;
  const std::uint64_t missing = arrivals.missing();
  const Arrivals::Taken taken = arrivals.take(number);
  note_way(stream, packet.header, taken == Arrivals::Taken::fresh, now_ns);
  switch (taken) {
    case Arrivals::Taken::seen:
      ++counts_.duplicates;
      pass_on(stream, packet,
              false);  // fetched once more for a child, because it was kept no longer
      return {};
    case Arrivals::Taken::beyond:
      ++counts_.beyond;
      return {};
    case Arrivals::Taken::fresh:
      break;
  }
  if (!options_.tree.is_leaf(origin, rank())) {
    stream.kept.keep(packet.header, packet.payload, now_ns);
    forget_expired(stream, now_ns);
    pass_on(stream, packet, true);
  }
  note_gap(stream, origin, missing != arrivals.missing(), now_ns);
  return {true, stream.receiving.note(number, packet.header.position, packet.header.flag,
                                      packet.header.value)};
}

// Forwards to the children that have asked while this rank did not have it. Those that multicast
// does not reach get what is new as well.
void Group::pass_on(Stream& stream, const wire::Parsed& packet, bool fresh) {
  if (fresh) {
    counts_.passed_on += stream.unreached.size();
    send_by_unicast(stream.unreached, packet.header, packet.payload);
  }
  std::erase_if(stream.wanted, [&](const Wanted& wanted) {
    if (wanted.number != packet.header.sequence) return false;
    if (fresh && std::ranges::count(stream.unreached, wanted.child) != 0) return true;
    ++counts_.repaired;
    send_by_unicast(std::span(&wanted.child, 1), packet.header, packet.payload);
    return true;
  });
}

// A packet of an origin has come: by multicast, or from another rank. If it was not there before,
// its multicast has been missed.
void Group::note_way(Stream& stream, const wire::Header& header, bool fresh, std::int64_t now_ns) {
  if (header.hop != kByUnicast) return stream.watch.note_multicast();
  if (!fresh || !stream.watch.note_unicast(now_ns, options_.await.first_ns)) return;
  if (unreached_by_ < 0) unreached_by_ = static_cast<int>(header.origin);
}

// Notes what a request or an answer says of its sender.
void Group::note_child(const wire::Header& header) {
  if (header.position != kUnreached) return;
  const int origin = static_cast<int>(header.origin);
  const int child = static_cast<int>(header.sender);
  std::vector<int>& unreached = origin == rank() ? unreached_ : stream_of(origin).unreached;
  if (std::ranges::count(unreached, child) == 0) unreached.push_back(child);
}

void Group::forget_expired(Stream& stream, std::int64_t now_ns) const {
  std::erase_if(stream.wanted,
                [now_ns](const Wanted& wanted) { return wanted.expires_ns < now_ns; });
}

void Group::repair(KeptPackets& kept, KeptPackets::Packet& packet, int child, std::int64_t now_ns) {
  const int origin = static_cast<int>(packet.header.origin);
  const auto number = static_cast<std::size_t>(options_.tree.number_of(origin, child));
  std::int64_t& sent_ns = packet.sent_ns[number];
  if (now_ns - sent_ns < options_.linger_ns) {
    ++counts_.lingering;
    return;
  }
  sent_ns = now_ns;
  ++counts_.repaired;
  send_by_unicast(std::span(&child, 1), packet.header, kept.payload(packet));
}

bool Group::is_child(int origin, int sender) const {
  return has(origin) && has(sender) && has(rank()) && origin != sender &&
         options_.tree.parent(origin, sender) == rank();
}

void Group::forget(int rank, std::int64_t now_ns) {
  options_.tree.forget(rank);
  if (ask_.runs()) look_at_answers(now_ns);
}

bool Group::take_nack(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  const int child = static_cast<int>(header.sender);
  const bool own = origin == rank();
  Stream* const stream = own ? nullptr : &stream_of(origin);
  KeptPackets& kept = own ? sent_ : stream->kept;
  note_child(header);
  note_floor(header, now_ns);
  bool has_some = false;
  bool has_payload = false;
  bool lacks = false;
  std::uint64_t gone = 0;
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if ((header.value >> i & 1) == 0) continue;
    const std::uint64_t number = header.place + i;
    if (KeptPackets::Packet* const packet = kept.find(number)) {
      repair(kept, *packet, child, now_ns);
      has_some = true;
      has_payload |= packet->bytes != 0;
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
    send_nack(*stream, origin, header.place, gone);
  }
  // Up at once: the child has waited its delay already. Requests that meet here are one.
  if (!lacks || now_ns - stream->passed_up_ns < options_.linger_ns) return has_payload;
  stream->passed_up_ns = now_ns;
  ++counts_.passed_up;
  send_nacks(*stream, origin);
  return has_payload;
}

// A request says that all before its place has come to its sender. If no rank is below the sender,
// that is an answer.
void Group::note_floor(const wire::Header& nack, std::int64_t now_ns) {
  const int origin = static_cast<int>(nack.origin);
  const int child = static_cast<int>(nack.sender);
  if (nack.hop != 0 || !options_.tree.is_leaf(origin, child)) return;
  if (origin == rank()) {
    if (!ask_.runs()) return;
    answers_.note(child, nack.place);
    return look_at_answers(now_ns);
  }
  Stream& stream = stream_of(origin);
  if (stream.answered) return;
  stream.answers.note(child, nack.place);
  answer_if_complete(stream, origin);
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

void Group::note_gap(Stream& stream, int origin, bool moved, std::int64_t now_ns) {
  ReceivingSide& receiving = stream.receiving;
  receiving.awaited = false;
  const bool gap = receiving.arrivals.has_gap();
  if (gap && receiving.lacks_gap && !moved) return;
  receiving.lack.stop();
  receiving.lacks_gap = gap;
  if (!gap) return;
  receiving.lack.start(now_ns, options_.gap, prng_);
  watch(stream, origin);
}

void Group::awaits(int origin, std::int64_t now_ns) {
  if (origin == rank()) return;
  Stream& stream = stream_of(origin);
  stream.receiving.awaited = true;
  stream.receiving.lack.start(now_ns, options_.await, prng_);
  watch(stream, origin);
}

void Group::watch(Stream& stream, int origin) {
  if (!std::exchange(stream.watched, true)) watched_.push_back(origin);
}

void Group::send_nacks(const Stream& stream, int origin) {
  const Arrivals& arrivals = stream.receiving.arrivals;
  std::uint64_t from = arrivals.missing();
  do {
    send_nack(stream, origin, from, arrivals.mask(from));
    from += kMaskNumbers;
  } while (wire::is_before(from, arrivals.end()));
}

void Group::send_nack(const Stream& stream, int origin, std::uint64_t place, std::uint64_t mask) {
  if (mask == 0) return;
  const int parent = options_.tree.parent(origin, rank());
  wire::Header header = gate_.header(wire::Kind::nack, static_cast<std::uint32_t>(parent), 0);
  header.origin = static_cast<std::uint32_t>(origin);
  header.flag = 1;
  header.place = place;
  header.hop = place == stream.receiving.arrivals.missing() ? 0 : 1;
  header.position = stream.watch.is_lost() ? kUnreached : 0;
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
  const wire::Header header = query_header();
  port_.send_packet(transport::kGroup, gate_.seal(header, {}), {});
  counts_.passed_on += unreached_.size();
  send_by_unicast(unreached_, header, {});
}

wire::Header Group::query_header() const {
  wire::Header header = gate_.header(wire::Kind::query, wire::kToGroup, query_);
  header.place = 0;        // this rank's multicasts
  header.value = unsent_;  // which also tells who lost the last packet
  return header;
}

// The question, or an answer to it, may be lost, or not be carried by multicast at all. A rank
// that has answered need not do so again: among many ranks some answer is lost each time.
void Group::ask_again() {
  const std::vector<int> silent = answers_.missing(options_.tree.children(rank(), rank()));
  if (silent.empty()) return send_query();  // all have answered, and one of them lacked something
  counts_.asked_again += silent.size();
  send_by_unicast(silent, query_header(), {});
}

void Group::take_query(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  Stream& stream = stream_of(origin);
  const bool known = !wire::is_before(stream.query, header.sequence);
  const bool fresh = !known || (header.sequence == stream.query && !stream.asked);
  note_way(stream, header, fresh, now_ns);
  if (wire::is_before(header.sequence, stream.query)) return;  // an old one
  if (!known) stream.answers.clear();
  stream.query = header.sequence;
  stream.asked = true;
  // By unicast it comes to a rank that has not answered, as far as its parent knows.
  if (fresh || header.hop == kByUnicast) stream.answered = false;
  stream.receiving.arrivals.expect_until(header.value);
  if (stream.receiving.arrivals.has_gap() && !stream.receiving.lacks_gap) {
    note_gap(stream, origin, true, now_ns);
  }
  answer_if_complete(stream, origin);
  if (!stream.answered) pass_down(stream, header, fresh, now_ns);
}

// Forwards a question to the children whose answers are missing. If it has come by multicast, it
// goes to those that multicast does not reach. A replayed question causes no further packets.
void Group::pass_down(Stream& stream, const wire::Header& query, bool fresh, std::int64_t now_ns) {
  const bool by_unicast = query.hop == kByUnicast;
  if (!fresh && (!by_unicast || now_ns - stream.passed_down_ns < options_.linger_ns)) return;
  stream.passed_down_ns = now_ns;
  if (!by_unicast) {
    counts_.passed_on += stream.unreached.size();
    return send_by_unicast(stream.unreached, query, {});
  }
  const int origin = static_cast<int>(query.origin);
  const std::vector<int> silent = stream.answers.missing(options_.tree.children(origin, rank()));
  counts_.asked_again += silent.size();
  send_by_unicast(silent, query, {});
}

void Group::take_answer(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  const int child = static_cast<int>(header.sender);
  note_child(header);
  if (origin == rank()) {
    if (header.place != query_) return;
    answers_.note(child, header.value);
    look_at_answers(now_ns);
    return;
  }
  Stream& stream = stream_of(origin);
  // The child may have heard the question, and this rank not yet. It does not answer before, for
  // the question says besides how far the origin has sent.
  if (wire::is_before(stream.query, header.place)) {
    stream.query = header.place;
    stream.asked = false;
    stream.answered = true;
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
  header.position = stream.watch.is_lost() ? kUnreached : 0;
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
    send_out(backlog_.front().header, backlog_.front().payload, now_ns);
    backlog_.pop_front();
  }
  if (unsent_ - lacking_ >= options_.window / 2) ask(now_ns);
}

void Group::look_at_timers(std::int64_t now_ns) {
  if (!watched_.empty()) {
    std::erase_if(watched_, [&](int origin) {
      Stream& stream = stream_of(origin);
      stream.watched = look_at(stream, origin, now_ns);
      return !stream.watched;
    });
  }
  if (!ask_.is_due(now_ns)) return;
  if (is_settled()) {
    ask_.stop();
    return;
  }
  ask_again();
  ask_.again(now_ns, options_.ask, prng_);
}

// Whether its timer still runs.
bool Group::look_at(Stream& stream, int origin, std::int64_t now_ns) {
  ++counts_.looked_at;
  ReceivingSide& receiving = stream.receiving;
  if (!receiving.lack.is_due(now_ns)) return receiving.lack.runs();
  // Only a rank that waits requests the packets of an origin that has left.
  const bool gap = receiving.arrivals.has_gap() && !options_.tree.has_left(origin);
  if (!gap && !receiving.awaited) {
    receiving.lack.stop();
    return false;
  }
  send_nacks(stream, origin);
  receiving.awaited = false;
  receiving.lack.again(now_ns, gap ? options_.gap : options_.await, prng_);
  return true;
}

std::int64_t Group::next_deadline_ns() const {
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const int origin : watched_) {
    const RetryTimer& lack = streams_[static_cast<std::size_t>(origin)]->receiving.lack;
    if (lack.runs()) soonest = std::min(soonest, lack.deadline_ns());
  }
  if (ask_.runs()) soonest = std::min(soonest, ask_.deadline_ns());
  return soonest;
}

}  // namespace unisono::reliable
