// SPDX-License-Identifier: BSD-3-Clause
// Outbox: the packets of a rank that have to leave. Packets with a number stay in a pool until
// their receivers have them. Others (requests, answers, multicasts) leave before them and are not
// kept. Packets that are too long for their path leave in pieces. Short messages of a row of calls
// may wait for each other (Burst). One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "reliable/context.hpp"
#include "reliable/link/burst.hpp"
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
  // Keeps a packet, seals it and lets it leave. Returns its index in the pool, which has room.
  std::uint32_t keep(int target, const wire::Header& header, std::span<const std::byte> payload);
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

  // From now on packets may wait for each other. `begun` is called when one begins to wait, with
  // the time after which end_burst() is to be called. It comes from another thread if need be.
  struct Bursts {
    std::function<bool(std::int64_t now_ns)> allowed;
    std::function<void(std::int64_t in_ns)> begun;
  };
  void allow_bursts(Bursts bursts) { bursts_ = std::move(bursts); }
  // After a message of so many bytes and packets: it leaves, or it waits for the next one.
  void flush_or_gather(int target, std::size_t bytes, std::int64_t packets = 1);
  // Whether a message to that target may wait. Its packets join those of the next one if all are
  // equally long.
  bool may_gather(int target) const {
    return bursts_.allowed != nullptr && burst_.may_gather() && datagrams_.joins(target);
  }
  // All packets that wait leave.
  void end_burst();
  // The rank looks for arrivals: all packets leave.
  void flush_after_look();

 private:
  // A packet that the pool does not keep.
  struct LoosePacket {
    int target;
    wire::Envelope envelope;
    std::vector<std::byte> payload;
  };

  std::size_t send_kept(bool is_burst);
  std::size_t send_front();
  std::size_t send_loose();
  void group_by_target(std::size_t count);
  void send_in_pieces(int target, const wire::Envelope& envelope,
                      std::span<const std::byte> payload);

  Context& context_;
  transport::Datagrams& datagrams_;
  const DatagramSizes& sizes_;
  PacketPool pool_;
  std::deque<std::uint32_t> queue_;  // packets of the pool
  std::deque<LoosePacket> loose_;    // before them
  bool awaits_room_ = false;         // a send was short, and the rest has not left since
  Burst burst_;
  Bursts bursts_;  // without functions: no packet waits
};

}  // namespace unisono::reliable
