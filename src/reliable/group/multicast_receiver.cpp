// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/multicast_receiver.hpp"

#include <algorithm>
#include <utility>

namespace unisono::reliable {
namespace {

// Requests of children for packets that this rank lacks itself. More are forgotten: they ask again.
constexpr std::size_t kMostWanted = 4 * kWindow;

}  // namespace

MulticastReceiver::Stream& MulticastReceiver::stream_of(int origin) {
  auto& stream = streams_[static_cast<std::size_t>(origin)];
  if (stream == nullptr) stream = std::make_unique<Stream>(context_.options);
  return *stream;
}

MulticastReceiver::Taken MulticastReceiver::take_put(const wire::Parsed& packet,
                                                     std::int64_t now_ns) {
  const int origin = static_cast<int>(packet.header.origin);
  Stream& stream = stream_of(origin);
  Arrivals& arrivals = stream.receiving.arrivals;
  const std::uint64_t number = packet.header.sequence;
  const std::uint64_t missing = arrivals.missing();
  const Arrivals::Taken taken = arrivals.take(number);
  note_way(stream, packet.header, taken == Arrivals::Taken::fresh, now_ns);
  switch (taken) {
    case Arrivals::Taken::seen:
      ++context_.counts.duplicates;
      // Fetched once more for a child, because it was kept no longer.
      pass_on(stream, packet, false);
      return {};
    case Arrivals::Taken::beyond:
      ++context_.counts.beyond;
      return {};
    case Arrivals::Taken::fresh:
      break;
  }
  if (!context_.options.tree.is_leaf(origin, context_.rank())) {
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
void MulticastReceiver::pass_on(Stream& stream, const wire::Parsed& packet, bool fresh) {
  if (fresh) {
    context_.counts.passed_on += stream.unreached.size();
    context_.send_by_unicast(stream.unreached, packet.header, packet.payload);
  }
  std::erase_if(stream.wanted, [&](const Wanted& wanted) {
    if (wanted.number != packet.header.sequence) return false;
    if (fresh && std::ranges::count(stream.unreached, wanted.child) != 0) return true;
    ++context_.counts.repaired;
    context_.send_by_unicast(std::span(&wanted.child, 1), packet.header, packet.payload);
    return true;
  });
}

// A packet of an origin has come: by multicast, or from another rank. If it was not there before,
// its multicast has been missed.
void MulticastReceiver::note_way(Stream& stream, const wire::Header& header, bool fresh,
                                 std::int64_t now_ns) {
  if (header.hop != kByUnicast) return stream.watch.note_multicast();
  if (!fresh || !stream.watch.note_unicast(now_ns, context_.options.await.first_ns)) return;
  if (unreached_by_ < 0) unreached_by_ = static_cast<int>(header.origin);
}

// Notes what a request or an answer says of its sender.
void MulticastReceiver::note_child(Stream& stream, const wire::Header& header) {
  const auto child = static_cast<int>(header.sender);
  if ((header.position & kUnreached) != 0 && std::ranges::count(stream.unreached, child) == 0) {
    stream.unreached.push_back(child);
  }
}

void MulticastReceiver::forget_expired(Stream& stream, std::int64_t now_ns) {
  std::erase_if(stream.wanted,
                [now_ns](const Wanted& wanted) { return wanted.expires_ns < now_ns; });
}

// A request says that all before its place has come to its sender. If no rank is below the sender,
// that is an answer.
bool MulticastReceiver::take_request(const wire::Header& request, std::int64_t now_ns) {
  const auto origin = static_cast<int>(request.origin);
  const auto child = static_cast<int>(request.sender);
  Stream& stream = stream_of(origin);
  note_child(stream, request);
  if (request.hop == 0 && !stream.answered && context_.options.tree.is_leaf(origin, child)) {
    stream.answers.note(
        child, {.value = request.place, .passes_over = passes_over(stream, origin, child)});
    answer_if_complete(stream, origin);
  }
  bool has_some = false;
  bool has_payload = false;
  bool lacks = false;
  std::uint64_t gone = 0;
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if ((request.value >> i & 1) == 0) continue;
    const std::uint64_t number = request.place + i;
    if (KeptPackets::Packet* const packet = stream.kept.find(number)) {
      context_.repair(stream.kept, *packet, child, now_ns);
      has_some = true;
      has_payload |= packet->bytes != 0;
    } else {
      const bool known = want(stream, number, child, now_ns);
      if (stream.receiving.arrivals.has(number)) {
        gone |= std::uint64_t{1} << i;
      } else if (known || !has_some) {  // what follows the last that is known may not exist
        lacks = true;
      }
    }
  }
  // Kept no longer, because too much has come since: the parent has it still, or the origin, which
  // drops nothing that a rank lacks.
  if (gone != 0) {
    ++context_.counts.gone;
    ask_for(stream, origin, request.place, gone);
  }
  // Up at once: the child has waited its delay already. Requests that meet here are one.
  if (!lacks || now_ns - stream.passed_up_ns < context_.options.linger_ns) return has_payload;
  stream.passed_up_ns = now_ns;
  ++context_.counts.passed_up;
  ask(stream, origin);
  return has_payload;
}

// Notes that the child gets the packet if it comes; whether it was sent, as far as is known here.
// If not, it may still be, and will reach the child by itself, so that is soon forgotten.
bool MulticastReceiver::want(Stream& stream, std::uint64_t number, int child,
                             std::int64_t now_ns) const {
  forget_expired(stream, now_ns);
  const bool known = wire::is_before(number, stream.receiving.arrivals.end());
  const std::int64_t expires_ns =
      now_ns + (known ? context_.options.await.most_ns : context_.options.await.first_ns);
  for (Wanted& wanted : stream.wanted) {
    if (wanted.number != number || wanted.child != child) continue;
    wanted.expires_ns = expires_ns;
    return known;
  }
  if (stream.wanted.size() < kMostWanted) stream.wanted.push_back({number, child, expires_ns});
  return known;
}

void MulticastReceiver::note_gap(Stream& stream, int origin, bool moved, std::int64_t now_ns) {
  ReceivingSide& receiving = stream.receiving;
  receiving.awaited = false;
  const bool gap = receiving.arrivals.has_gap();
  if (gap && receiving.lacks_gap && !moved) return;
  receiving.lack.stop();
  receiving.lacks_gap = gap;
  if (!gap) return;
  receiving.lack.start(now_ns, context_.options.gap, context_.prng);
  watch(stream, origin);
}

void MulticastReceiver::awaits(int origin, std::int64_t now_ns) {
  if (origin == context_.rank()) return;
  Stream& stream = stream_of(origin);
  stream.receiving.awaited = true;
  stream.receiving.lack.start(now_ns, context_.options.await, context_.prng);
  watch(stream, origin);
}

void MulticastReceiver::watch(Stream& stream, int origin) {
  if (!std::exchange(stream.watched, true)) watched_.push_back(origin);
}

void MulticastReceiver::ask(const Stream& stream, int origin) {
  const Arrivals& arrivals = stream.receiving.arrivals;
  std::uint64_t from = arrivals.missing();
  do {
    ask_for(stream, origin, from, arrivals.mask(from));
    from += kMaskNumbers;
  } while (wire::is_before(from, arrivals.end()));
}

void MulticastReceiver::ask_for(const Stream& stream, int origin, std::uint64_t place,
                                std::uint64_t mask) {
  if (mask == 0) return;
  const int parent = context_.options.tree.parent(origin, context_.rank());
  wire::Header header =
      context_.filter.header(wire::Kind::nack, static_cast<std::uint32_t>(parent), 0);
  header.origin = static_cast<std::uint32_t>(origin);
  header.flag = 1;
  header.place = place;
  header.hop = place == stream.receiving.arrivals.missing() ? 0 : 1;
  header.position = stream.watch.is_lost() ? kUnreached : 0;
  header.value = mask;
  context_.packets.control.send(parent, header);
  ++context_.counts.nacks;
}

void MulticastReceiver::take_query(const wire::Header& header, std::int64_t now_ns) {
  const int origin = static_cast<int>(header.origin);
  Stream& stream = stream_of(origin);
  const bool known = !wire::is_before(stream.query, header.sequence);
  const bool fresh = !known || (header.sequence == stream.query && !stream.asked);
  note_way(stream, header, fresh, now_ns);
  if (wire::is_before(header.sequence, stream.query)) return;  // an old one
  if (!known) stream.answers.clear();
  stream.query = header.sequence;
  stream.known_lost = header.flag;
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
void MulticastReceiver::pass_down(Stream& stream, const wire::Header& query, bool fresh,
                                  std::int64_t now_ns) {
  const bool by_unicast = query.hop == kByUnicast;
  if (!fresh && (!by_unicast || now_ns - stream.passed_down_ns < context_.options.linger_ns))
    return;
  stream.passed_down_ns = now_ns;
  if (!by_unicast) {
    context_.counts.passed_on += stream.unreached.size();
    return context_.send_by_unicast(stream.unreached, query, {});
  }
  const int origin = static_cast<int>(query.origin);
  const std::vector<int> silent = stream.answers.missing(context_.children(origin));
  context_.counts.asked_again += silent.size();
  context_.send_by_unicast(silent, query, {});
}

void MulticastReceiver::take_answer(const wire::Header& answer) {
  const auto origin = static_cast<int>(answer.origin);
  Stream& stream = stream_of(origin);
  note_child(stream, answer);
  // The child may have heard the question, and this rank not yet. It does not answer before,
  // because the question also says how far the origin has sent.
  if (wire::is_before(stream.query, answer.place)) {
    stream.query = answer.place;
    stream.asked = false;
    stream.answered = true;
    stream.answers.clear();
  }
  if (answer.place != stream.query) return;
  stream.answers.note(static_cast<int>(answer.sender),
                      {.value = answer.value, .passes_over = (answer.position & kPassesOver) != 0});
  answer_if_complete(stream, origin);
}

// Whether a combined answer leaves out a member below `rank` that this rank knows to be lost. Not
// if the origin knew the same losses when it asked. While another loss is being reported, this may
// be true of a loss that the origin knows. Then a multicast fails that need not.
bool MulticastReceiver::passes_over(const Stream& stream, int origin, int rank) const {
  const RepairTree& tree = context_.options.tree;
  return stream.known_lost != tree.lost_set() && tree.passes_over_lost(origin, rank);
}

// The worst of this rank and those below it.
void MulticastReceiver::answer_if_complete(Stream& stream, int origin) {
  if (stream.answered) return;
  const auto worst = stream.answers.worst(
      context_.children(origin), {.value = stream.receiving.arrivals.missing(),
                                  .passes_over = passes_over(stream, origin, context_.rank())});
  if (!worst) return;
  stream.answered = true;
  ++context_.counts.answers;
  const int parent = context_.options.tree.parent(origin, context_.rank());
  wire::Header header =
      context_.filter.header(wire::Kind::answer, static_cast<std::uint32_t>(parent), 0);
  header.origin = static_cast<std::uint32_t>(origin);
  header.place = stream.query;
  header.position = stream.watch.is_lost() ? kUnreached : 0;
  if (worst->passes_over) header.position |= kPassesOver;
  header.value = worst->value;
  context_.packets.control.send(parent, header);
}

void MulticastReceiver::look_at_timers(std::int64_t now_ns) {
  std::erase_if(watched_, [&](int origin) {
    Stream& stream = stream_of(origin);
    stream.watched = look_at(stream, origin, now_ns);
    return !stream.watched;
  });
}

// Whether its timer still runs.
bool MulticastReceiver::look_at(Stream& stream, int origin, std::int64_t now_ns) {
  ++context_.counts.looked_at;
  ReceivingSide& receiving = stream.receiving;
  if (!receiving.lack.is_due(now_ns)) return receiving.lack.runs();
  // Only a rank that waits requests the packets of an origin that has left.
  const bool gap = receiving.arrivals.has_gap() && !context_.options.tree.has_left(origin);
  if (!gap && !receiving.awaited) {
    receiving.lack.stop();
    return false;
  }
  ask(stream, origin);
  receiving.awaited = false;
  receiving.lack.again(now_ns, gap ? context_.options.gap : context_.options.await, context_.prng);
  return true;
}

std::int64_t MulticastReceiver::next_deadline_ns() const {
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const int origin : watched_) {
    const RetryTimer& lack = streams_[static_cast<std::size_t>(origin)]->receiving.lack;
    if (lack.runs()) soonest = std::min(soonest, lack.deadline_ns());
  }
  return soonest;
}

}  // namespace unisono::reliable
