// SPDX-License-Identifier: BSD-3-Clause
// The sending half: from a put to datagrams, and what becomes of them until the peer has them. The
// receiving half is receive.cpp.
#include "reliable/reliable.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "reliable/get_payload.hpp"

namespace unisono::reliable {
namespace {

using transport::Outgoing;

// Datagrams of one call to the transport; more bring nothing, whatever it says of itself.
constexpr std::size_t kMostBatch = 64;
// With so many packets under way, a rank asks about them before the window is full.
constexpr std::uint64_t kAskFrom = kWindow / 2;

ReliableOptions completed(ReliableOptions options) {
  UNISONO_CHECK(options.repair_arity >= 1 && options.repair_arity <= kMostArity,
                "arity of repairs");
  if (options.hosts.ranks() == 0) options.hosts = topology::HostMap::apart(options.ranks);
  return options;
}

}  // namespace

Reliable::Reliable(std::unique_ptr<transport::Datagrams> datagrams, ReliableOptions options)
    : datagrams_(std::move(datagrams)),
      options_(completed(std::move(options))),
      capabilities_{
          .name = datagrams_->limits().name, .one_sided = false, .ordered = false, .get = true},
      gate_(options_.key, datagrams_->rank(), options_.ranks),
      payload_bytes_(std::min<std::size_t>(datagrams_->limits().max_payload - wire::kHeaderBytes,
                                           std::numeric_limits<std::uint16_t>::max()) /
                     8 * 8),
      pool_(options_.pool_packets, payload_bytes_),
      prng_(options_.seed ^ (static_cast<std::uint64_t>(datagrams_->rank()) << 32)),
      links_(static_cast<std::size_t>(options_.ranks)),
      group_({.ranks = options_.ranks,
              .tree = {options_.hosts, options_.repair_arity},
              .gap = options_.gap,
              .await = options_.await,
              .ask = options_.ask,
              .linger_ns = options_.linger_ns,
              .payload_bytes = payload_bytes_},
             gate_, *this, options_.seed + datagrams_->rank()),
      paths_({.hosts = options_.hosts,
              .full_bytes = wire::kHeaderBytes + payload_bytes_,
              .apart = options_.gap,
              .ask = options_.ask,
              .slowest_ns = options_.await.most_ns,
              .seed = options_.seed - datagrams_->rank()}),
      pieces_(datagrams_->limits().max_payload) {
  UNISONO_CHECK(datagrams_->limits().max_payload >= wire::kHeaderBytes + 8, "room in a datagram");
  UNISONO_CHECK(options_.now_ns != nullptr, "the clock of a reliable transport");
  now_ns_ = options_.now_ns();
}

Link& Reliable::link_to(int rank) {
  auto& link = links_[static_cast<std::size_t>(rank)];
  if (link == nullptr) link = std::make_unique<Link>();
  return *link;
}

std::uint64_t Reliable::offset_of(const void* address, std::size_t bytes) const {
  const auto* const place = static_cast<const std::byte*>(address);
  UNISONO_CHECK(
      place >= options_.region && place + bytes <= options_.region + options_.region_bytes,
      "a put outside the region");
  return static_cast<std::uint64_t>(place - options_.region);
}

std::uint64_t Reliable::flag_of(const transport::Put& message) const {
  return offset_of(message.flag, sizeof *message.flag) + (message.forward ? wire::kForward : 0);
}

void Reliable::put_here(const transport::Put& message) {
  if (message.bytes != 0 && message.place != message.source) {
    std::memcpy(message.place, message.source, message.bytes);
  }
  if (message.flag == nullptr) return;
  transport::raise(message.flag, message.flag_value, message.forward);
}

void Reliable::put(const transport::Put& message) {
  if (message.target == datagrams_->rank()) return put_here(message);
  if (message.bytes == 0 && message.flag == nullptr) return;
  now_ns_ = options_.now_ns();
  const std::uint64_t place = message.bytes == 0 ? 0 : offset_of(message.place, message.bytes);
  Link& link = link_to(message.target);
  const std::size_t most = payload_of(paths_.most_bytes(message.target));
  std::size_t done = 0;
  do {
    const std::size_t piece = std::min(most, message.bytes - done);
    wire::Header header = gate_.header(wire::Kind::put, static_cast<std::uint32_t>(message.target),
                                       link.sending.take_number());
    header.position = link.sending.position++;
    header.place = place + done;
    set_acknowledged(header, link.receiving.arrivals.missing());
    link.receiving.told = link.receiving.arrivals.missing();
    const std::span payload(message.source + done, piece);
    done += piece;
    header.value = (message.bytes - done + most - 1) / most;  // packets that follow
    if (done == message.bytes && message.flag != nullptr) {
      header.flag = flag_of(message);
      header.value = message.flag_value;
      link.sending.position = 0;
    }
    submit(link, message.target, header, payload);
  } while (done < message.bytes);
  flush();
}

void Reliable::get(const transport::Get& wanted) {
  now_ns_ = options_.now_ns();
  Link& link = link_to(wanted.source);
  wire::Header header = gate_.header(wire::Kind::get, static_cast<std::uint32_t>(wanted.source),
                                     link.sending.take_number());
  header.place = wanted.offset;
  header.flag = offset_of(wanted.flag, sizeof *wanted.flag);
  header.value = wanted.flag_value;
  set_acknowledged(header, link.receiving.arrivals.missing());
  link.receiving.told = link.receiving.arrivals.missing();
  const GetPayload payload = encode_get({offset_of(wanted.place, wanted.bytes), wanted.bytes});
  submit(link, wanted.source, header, payload);
  // The other side does not wait for it, and would not ask if it were lost.
  confirm(wanted.source);
  flush();
}

void Reliable::confirm(int rank) {
  Link& link = link_to(rank);
  if (link.sending.ask.runs() || link.ended) return;
  link.sending.ask.start(now_ns_, options_.ask, prng_);
  watch(link, rank);
}

transport::MulticastReport Reliable::probe_multicast(std::int64_t deadline_ns) {
  if (!datagrams_->limits().multicast) {
    const std::string& note = datagrams_->multicast_note();
    return {.carries = false, .note = note.empty() ? "multicast is off" : note};
  }
  return transport::probe_multicast(*datagrams_, gate_, options_.hosts.firsts(), deadline_ns);
}

void Reliable::put_to_all(const transport::Put& message) {
  UNISONO_CHECK(datagrams_->limits().multicast && group_.has(datagrams_->rank()),
                "a multicast over datagrams without");
  const std::uint64_t place = message.bytes == 0 ? 0 : offset_of(message.place, message.bytes);
  now_ns_ = options_.now_ns();
  const std::size_t most = payload_of(group_most_bytes_);
  std::size_t done = 0;
  std::uint32_t position = 0;
  do {
    const std::size_t piece = std::min(most, message.bytes - done);
    wire::Header header = gate_.header(wire::Kind::put, wire::kToGroup, 0);
    header.position = position++;
    header.place = place + done;
    const std::span payload(message.source + done, piece);
    done += piece;
    header.value = (message.bytes - done + most - 1) / most;
    if (done == message.bytes && message.flag != nullptr) {
      header.flag = flag_of(message);
      header.value = message.flag_value;
    }
    group_.put(header, payload, now_ns_);
  } while (done < message.bytes);
  flush();
}

void Reliable::awaits_multicast(int origin) { group_.awaits(origin, now_ns_); }

bool Reliable::all_have_all() {
  progress();
  group_.ask(now_ns_);
  flush();
  return group_.is_settled();
}

void Reliable::submit(Link& link, int target, wire::Header header,
                      std::span<const std::byte> payload) {
  const wire::Envelope envelope = gate_.seal(header, payload);
  if (link.sending.backlog.empty() && keep(link, target, envelope, payload)) {
    if (link.sending.under_way() == kAskFrom) ask_for_room(link, target);
    return;
  }
  ++counts_.waited;
  if (link.sending.backlog.empty()) backlogged_.push_back(target);
  link.sending.backlog.push_back({envelope, {payload.begin(), payload.end()}});
  ask_for_room(link, target);
}

// A place in the pool; kNone if there is none. Packets that only forgotten peers lack give way.
std::uint32_t Reliable::take_room() {
  const std::uint32_t index = pool_.take();
  if (index != PacketPool::kNone) return index;
  flush();  // once they are sent all the same: they say what those ranks are for the others
  for (const auto& link : links_) {
    if (link != nullptr && link->ended) acknowledge(*link, link->sending.unsent());
  }
  return pool_.take();
}

// False if there is no room for it.
bool Reliable::keep(Link& link, int target, const wire::Envelope& envelope,
                    std::span<const std::byte> payload) {
  if (!link.sending.has_room()) return false;
  const std::uint32_t index = take_room();
  if (index == PacketPool::kNone) {
    // It is others' packets that fill the pool.
    for (std::size_t rank = 0; rank < links_.size(); ++rank) {
      if (links_[rank] != nullptr && links_[rank]->sending.under_way() != 0) {
        ask_for_room(*links_[rank], static_cast<int>(rank));
      }
    }
    return false;
  }
  KeptPacket& packet = pool_.at(index);
  packet.envelope = envelope;
  packet.payload_bytes = static_cast<std::uint32_t>(payload.size());
  packet.target = target;
  packet.queued = true;
  if (!payload.empty()) std::memcpy(pool_.room(index).data(), payload.data(), payload.size());
  link.sending.note_sent(index);
  queue_.push_back(index);
  ++counts_.packets;
  return true;
}

// The place that one peer's packet frees may be what another peer's packets wait for.
void Reliable::drain_backlogs() {
  std::erase_if(backlogged_, [this](int rank) {
    Link& link = link_to(rank);
    auto& backlog = link.sending.backlog;
    while (!backlog.empty() &&
           keep(link, rank, backlog.front().envelope, backlog.front().payload)) {
      backlog.pop_front();
    }
    if (!backlog.empty()) ask_for_room(link, rank);
    return backlog.empty();
  });
}

// Once; the timer asks again if no answer comes.
void Reliable::ask_for_room(Link& link, int rank) {
  if (link.sending.ask.runs() || link.sending.under_way() == 0) return;
  send_status(link, rank, true);
  link.sending.ask.start(now_ns_, options_.ask, prng_);
  watch(link, rank);
}

void Reliable::flush() {
  while (!loose_.empty() || !queue_.empty()) {
    if ((loose_.empty() ? send_some() : send_loose()) == 0) return;
  }
}

std::size_t Reliable::send_loose() {
  std::array<Outgoing, kMostBatch> batch;
  const std::size_t most = std::clamp<std::size_t>(datagrams_->limits().batch, 1, kMostBatch);
  const std::size_t count = std::min(most, loose_.size());
  for (std::size_t i = 0; i < count; ++i) {
    batch[i] = {loose_[i].target, loose_[i].envelope, loose_[i].payload};
  }
  const std::size_t taken = datagrams_->send(std::span(batch).first(count));
  loose_.erase(loose_.begin(), loose_.begin() + static_cast<std::ptrdiff_t>(taken));
  return taken;
}

// A batch of what is queued; gives how many of them need no more thought.
std::size_t Reliable::send_some() {
  std::array<Outgoing, kMostBatch> batch;
  const std::size_t most = std::clamp<std::size_t>(datagrams_->limits().batch, 1, kMostBatch);
  std::size_t count = 0;
  std::size_t looked_at = 0;
  for (; looked_at < queue_.size() && count < most; ++looked_at) {
    const KeptPacket& packet = pool_.at(queue_[looked_at]);
    if (packet.over || is_too_long(packet.target, packet.payload_bytes)) break;
    batch[count++] = {packet.target, packet.envelope, pool_.payload(queue_[looked_at])};
  }
  if (count == 0) return send_front();
  const std::size_t taken = datagrams_->send(std::span(batch).first(count));
  for (std::size_t i = 0; i < taken; ++i) {
    KeptPacket& packet = pool_.at(queue_.front());
    packet.queued = false;
    packet.sent_ns = now_ns_;
    queue_.pop_front();
  }
  return taken;
}

// Handles datagrams that are no ordinary packets.
std::size_t Reliable::send_front() {
  const std::uint32_t index = queue_.front();
  queue_.pop_front();
  KeptPacket& packet = pool_.at(index);
  if (packet.over) {  // acknowledged before it was its turn again
    pool_.give_back(index);
    return 1;
  }
  packet.queued = false;
  packet.sent_ns = now_ns_;
  send_in_pieces(packet.target, packet.envelope, pool_.payload(index));
  return 1;
}

void Reliable::acknowledge(Link& link, std::uint64_t number) {
  const std::uint64_t before = link.sending.lacking();
  link.sending.acknowledge(number, [this](std::uint32_t index) {
    KeptPacket& packet = pool_.at(index);
    packet.over = true;
    if (!packet.queued) pool_.give_back(index);
  });
  if (link.sending.lacking() != before) link.sending.ask.stop();
}

bool Reliable::is_settled() const {
  return group_.is_settled() && std::ranges::all_of(links_, [](const auto& link) {
           return link == nullptr || link->ended || link->sending.is_settled();
         });
}

void Reliable::forget(int rank) {
  Link& link = link_to(rank);
  if (!std::exchange(link.ended, true)) group_.forget(rank, now_ns_);
  paths_.forget(rank);
  // The room of what it lacks is for others.
  do {
    acknowledge(link, link.sending.unsent());
    drain_backlogs();
  } while (link.sending.under_way() != 0);
}

bool Reliable::settle() {
  progress();
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    if (links_[rank] == nullptr || links_[rank]->ended || links_[rank]->sending.is_settled()) {
      continue;
    }
    ask_for_room(*links_[rank], static_cast<int>(rank));
  }
  group_.ask(now_ns_);
  flush();
  return is_settled();
}

void Reliable::say_farewell() {
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    if (links_[rank] == nullptr) continue;
    Link& link = *links_[rank];
    if (link.receiving.told != link.receiving.arrivals.missing()) {
      send_status(link, static_cast<int>(rank), false);
    }
  }
  flush();
}

}  // namespace unisono::reliable
