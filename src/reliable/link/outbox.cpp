// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/outbox.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "reliable/path/pieces.hpp"

namespace unisono::reliable {
namespace {

using transport::Outgoing;

// Datagrams of one call to the transport; more bring nothing, whatever it says of itself.
constexpr std::size_t kMostBatch = 64;
// Packets that wait for room and are not kept. Timers replace those that are dropped.
constexpr std::size_t kMostLoose = 1024;

// A rank that computes has packets that others lack, or answers that they need.
bool is_urgent(const wire::Envelope& envelope) {
  const auto kind = static_cast<wire::Kind>(envelope[offsetof(wire::Header, kind)]);
  return kind == wire::Kind::nack || kind == wire::Kind::query;
}

std::size_t batch_of(const transport::Datagrams& datagrams) {
  return std::clamp<std::size_t>(datagrams.limits().batch, 1, kMostBatch);
}

}  // namespace

// The program may change its buffer meanwhile, though it must not. The tag is that of the copy, as
// a packet with a wrong one would be repeated and dropped for ever.
std::uint32_t Outbox::keep(int target, const wire::Header& header,
                           std::span<const std::byte> payload) {
  const std::uint32_t index = pool_.take();
  KeptPacket& packet = pool_.at(index);
  packet.payload_bytes = static_cast<std::uint32_t>(payload.size());
  packet.target = target;
  packet.queued = true;
  if (!payload.empty()) std::memcpy(pool_.room(index).data(), payload.data(), payload.size());
  packet.envelope = context_.filter.seal(header, pool_.payload(index));
  queue_.push_back(index);
  ++context_.counts.packets;
  return index;
}

void Outbox::repeat(std::uint32_t index) {
  KeptPacket& packet = pool_.at(index);
  if (packet.queued) return;
  packet.queued = true;
  queue_.push_back(index);
  ++context_.counts.repeated;
}

void Outbox::release(std::uint32_t index) {
  KeptPacket& packet = pool_.at(index);
  packet.over = true;
  if (!packet.queued) pool_.give_back(index);
}

void Outbox::send(int target, const wire::Envelope& envelope, std::span<const std::byte> payload) {
  if (sizes_.is_too_long(target, payload.size())) return send_in_pieces(target, envelope, payload);
  if (loose_.size() >= kMostLoose) {
    loose_.pop_front();
    ++context_.counts.unsent;
  }
  loose_.push_back({target, envelope, {payload.begin(), payload.end()}});
}

void Outbox::send_in_pieces(int target, const wire::Envelope& envelope,
                            std::span<const std::byte> payload) {
  const std::vector<std::byte> packet = joined(envelope, payload);
  const auto to = target == transport::kGroup ? wire::kToGroup : static_cast<std::uint32_t>(target);
  for (const PacketPiece& piece : cut(context_.filter, to, packet, sizes_.most_bytes(target))) {
    loose_.push_back({target,
                      context_.filter.seal(piece.header, piece.bytes),
                      {piece.bytes.begin(), piece.bytes.end()}});
    ++context_.counts.pieces;
  }
}

// Whether a packet may wait is asked only when it would be the first: that reads the clock of
// others, and a burst is short.
void Outbox::flush_or_gather(int target, std::size_t bytes, std::int64_t packets) {
  if (bursts_.allowed == nullptr || !datagrams_.joins(target)) return flush();
  switch (burst_.next(context_.now_ns, bytes, packets)) {
    case Burst::Next::gather:
      return;
    case Burst::Next::begin:
      if (bursts_.allowed(context_.now_ns)) {
        bursts_.begun(burst_.longest_ns());
        return burst_.note_begun(context_.options.now_ns());
      }
      burst_.restart();
      break;
    case Burst::Next::leave:
      break;
  }
  flush();
  burst_.note_left(context_.options.now_ns());
}

void Outbox::end_burst() {
  context_.now_ns = context_.options.now_ns();
  flush();
}

void Outbox::flush_after_look() {
  flush();
  burst_.note_look(context_.now_ns);
}

void Outbox::flush() {
  const bool is_burst = burst_.is_open();
  burst_.end();
  while (!is_empty()) {
    if ((loose_.empty() ? send_kept(is_burst) : send_loose()) != 0) continue;
    awaits_room_ = true;
    return;
  }
  // Packets that were left have been acknowledged: the datagrams need not wake anyone for room.
  if (std::exchange(awaits_room_, false)) datagrams_.send({});
}

std::size_t Outbox::send_loose() {
  std::array<Outgoing, kMostBatch> batch;
  const std::size_t count = std::min(batch_of(datagrams_), loose_.size());
  for (std::size_t i = 0; i < count; ++i) {
    batch[i] = {loose_[i].target, loose_[i].envelope, loose_[i].payload,
                is_urgent(loose_[i].envelope)};
  }
  const std::size_t taken = datagrams_.send(std::span(batch).first(count));
  loose_.erase(loose_.begin(), loose_.begin() + static_cast<std::ptrdiff_t>(taken));
  return taken;
}

// A batch of the queue; returns how many of its packets are handled.
std::size_t Outbox::send_kept(bool is_burst) {
  std::array<Outgoing, kMostBatch> batch;
  const std::size_t most = batch_of(datagrams_);
  if (is_burst) group_by_target(std::min(most, queue_.size()));
  std::size_t count = 0;
  std::size_t looked_at = 0;
  for (; looked_at < queue_.size() && count < most; ++looked_at) {
    const KeptPacket& packet = pool_.at(queue_[looked_at]);
    if (packet.over || sizes_.is_too_long(packet.target, packet.payload_bytes)) break;
    batch[count++] = {packet.target, packet.envelope, pool_.payload(queue_[looked_at])};
  }
  if (count == 0) return send_front();
  const std::size_t taken = datagrams_.send(std::span(batch).first(count));
  for (std::size_t i = 0; i < taken; ++i) {
    KeptPacket& packet = pool_.at(queue_.front());
    packet.queued = false;
    packet.sent_ns = context_.now_ns;
    queue_.pop_front();
  }
  return taken;
}

// Packets to one target become neighbours among the first `count`, because only neighbours join.
// Those to the same target keep their order.
void Outbox::group_by_target(std::size_t count) {
  std::array<std::uint32_t, kMostBatch> before;
  std::copy_n(queue_.begin(), count, before.begin());
  const auto target_of = [&](std::size_t i) { return pool_.at(before[i]).target; };
  std::size_t done = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (before[i] == PacketPool::kNone) continue;
    const int target = target_of(i);
    for (std::size_t j = i; j < count; ++j) {
      if (before[j] == PacketPool::kNone || target_of(j) != target) continue;
      queue_[done++] = std::exchange(before[j], PacketPool::kNone);
    }
  }
}

// A packet that does not leave in one datagram.
std::size_t Outbox::send_front() {
  const std::uint32_t index = queue_.front();
  queue_.pop_front();
  KeptPacket& packet = pool_.at(index);
  if (packet.over) {  // acknowledged before it was its turn again
    pool_.give_back(index);
    return 1;
  }
  packet.queued = false;
  packet.sent_ns = context_.now_ns;
  send_in_pieces(packet.target, packet.envelope, pool_.payload(index));
  return 1;
}

}  // namespace unisono::reliable
