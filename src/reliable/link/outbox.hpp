// SPDX-License-Identifier: BSD-3-Clause
// Outbox: the packets of a rank that have to leave. Packets with a number stay in a pool until
// their receivers have them. Others (requests, answers, multicasts) leave before them and are not
// kept. Packets that are too long for their path leave in pieces. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "reliable/context.hpp"
#include "reliable/link/packet_pool.hpp"
#include "reliable/path/datagram_sizes.hpp"
#include "transport/datagrams.hpp"

namespace unisono::reliable {

class Outbox {
 public:
  // All outlive it.
  Outbox(Context& context, transport::Datagrams& datagrams, const DatagramSizes& sizes)
      : context_(context),
        datagrams_(datagrams),
        sizes_(sizes),
        pool_(context.options.pool_packets, DatagramSizes::full_payload(datagrams.limits())) {}

  bool has_room() const { return pool_.free() != 0; }
  // Keeps a packet and lets it leave. Returns its index in the pool, which has room.
  std::uint32_t keep(int target, const wire::Envelope& envelope,
                     std::span<const std::byte> payload);
  const KeptPacket& kept(std::uint32_t index) const { return pool_.at(index); }
  // Lets it leave again; not if it is about to leave.
  void repeat(std::uint32_t index);
  // Its receiver has it.
  void release(std::uint32_t index);

  // target: as transport::Outgoing::target.
  void send(int target, const wire::Envelope& envelope, std::span<const std::byte> payload);

  bool is_empty() const { return loose_.empty() && queue_.empty(); }
  // Sends what the datagrams take.
  void flush();

 private:
  // A packet that the pool does not keep.
  struct LoosePacket {
    int target;
    wire::Envelope envelope;
    std::vector<std::byte> payload;
  };

  std::size_t send_kept();
  std::size_t send_front();
  std::size_t send_loose();
  void send_in_pieces(int target, const wire::Envelope& envelope,
                      std::span<const std::byte> payload);

  Context& context_;
  transport::Datagrams& datagrams_;
  const DatagramSizes& sizes_;
  PacketPool pool_;
  std::deque<std::uint32_t> queue_;  // packets of the pool
  std::deque<LoosePacket> loose_;    // before them
};

}  // namespace unisono::reliable
