// SPDX-License-Identifier: BSD-3-Clause
// What the parts of a Group share: its options with the repair tree, its counts, and how its
// packets leave. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/prng.hpp"
#include "reliable/group/kept_packets.hpp"
#include "reliable/group/repair_tree.hpp"
#include "reliable/link/control.hpp"
#include "reliable/link/retry.hpp"
#include "reliable/path/narrow_paths.hpp"

namespace unisono::reliable {

// `hop` of a put or query to the group that goes to one rank by unicast.
inline constexpr std::uint16_t kByUnicast = 1;
// `position` of a request or an answer: the origin's multicasts do not reach the sender.
inline constexpr std::uint32_t kUnreached = 1;
// The same of an answer: it does not speak for a lost member, of which the question does not know.
inline constexpr std::uint32_t kPassesOver = 2;

struct GroupOptions {
  int ranks = 1;  // of the job
  RepairTree tree;
  RetryDelays gap;
  RetryDelays await;
  RetryDelays ask;
  std::int64_t linger_ns = 0;
  std::size_t payload_bytes = 0;      // of one packet
  std::uint64_t window = 256;         // packets of this rank that somebody may lack; it keeps them
  std::uint64_t repair_packets = 64;  // that a rank keeps of each origin for its children
};

struct GroupCounts {
  std::uint64_t packets = 0;    // multicast by this rank, each once
  std::uint64_t repaired = 0;   // sent again, to a child
  std::uint64_t passed_up = 0;  // requests for what this rank lacks too
  std::uint64_t lingering = 0;  // asked for, but sent to that child just before
  std::uint64_t gone = 0;       // asked for, but not kept any more
  std::uint64_t nacks = 0;
  std::uint64_t queries = 0;      // how far is everybody?
  std::uint64_t asked_again = 0;  // queries sent by unicast, to a child that has not answered
  std::uint64_t answers = 0;      // combined, to the parent
  std::uint64_t failed = 0;       // multicasts of this rank that a lost member may lack
  std::uint64_t duplicates = 0;
  std::uint64_t beyond = 0;
  std::uint64_t waited = 0;     // packets that found no room in the window
  std::uint64_t passed_on = 0;  // puts and queries sent to a child that multicast does not reach
  std::uint64_t looked_at = 0;  // timers of origins
  bool operator==(const GroupCounts&) const = default;
};

// The way of packets to other ranks.
struct GroupPackets {
  NarrowPaths& narrow;
  Outbox& outbox;
  Control& control;

  // To all by multicast; or, repeated or passed on, to one rank (transport::Outgoing::target).
  void send(int target, const wire::Envelope& envelope, std::span<const std::byte> payload) {
    if (target != transport::kGroup) narrow.note_repair(target, envelope, payload.size());
    outbox.send(target, envelope, payload);
  }
};

struct GroupContext {
  GroupOptions options;
  const wire::PacketFilter& filter;
  GroupPackets packets;
  base::Prng prng;  // of the delays
  GroupCounts counts{};

  int rank() const { return static_cast<int>(filter.identity().rank); }
  std::vector<int> children(int origin) const { return options.tree.children(origin, rank()); }
  // To each of the children that has not left.
  void send_by_unicast(std::span<const int> children, wire::Header header,
                       std::span<const std::byte> payload);
  // Repeats a packet to a child, unless it left just before.
  void repair(KeptPackets& kept, KeptPackets::Packet& packet, int child, std::int64_t now_ns);
};

}  // namespace unisono::reliable
