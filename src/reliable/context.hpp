// SPDX-License-Identifier: BSD-3-Clause
// What the parts of a Reliable share: its options, its counts, the packet filter that seals and
// opens packets, and the time of the current call. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/prng.hpp"
#include "reliable/link/retry.hpp"
#include "topology/host_map.hpp"
#include "wire/packet_filter.hpp"

namespace unisono::reliable {

struct ReliableOptions {
  wire::Key key{};
  int ranks = 1;
  std::byte* region = nullptr;  // this rank's; all ranks' have the same size and layout
  std::size_t region_bytes = 0;
  std::size_t pool_packets = 4096;
  std::uint64_t seed = 1;  // of the delays
  // Somebody waits, and nothing comes: long, because the peer may just not be that far.
  RetryDelays await{.first_ns = 2'000'000, .most_ns = 100'000'000};
  // Later packets have come, and this one not: it was overtaken or is lost.
  RetryDelays gap{.first_ns = 300'000, .most_ns = 20'000'000};
  // For a sender without room.
  RetryDelays ask{.first_ns = 300'000, .most_ns = 20'000'000};
  int repair_arity = 4;  // of the tree in which a multicast is repaired
  // The size found for the path to one rank holds for all ranks of its host. The first rank of each
  // host multicasts and receives multicasts. Empty: each rank has a host of its own.
  topology::HostMap hosts{};
  // A packet that was sent so short a time ago is not sent again: many requests, one repetition.
  std::int64_t linger_ns = 200'000;
  // A rank that has asked nothing for so long has not waited: a peer's silence is counted anew. It
  // is above the longest time between two requests of a waiting rank.
  std::int64_t lull_ns = 500'000'000;
  std::function<std::int64_t()> now_ns;
  // Datagrams to that rank (transport::kGroup: to all) have so many bytes at most from now on,
  // because longer ones vanish while short ones come. 0: only the shortest come, and the rank
  // counts as silent.
  std::function<void(int rank, std::size_t most_bytes)> narrowed{};
};

struct ReliableCounts {
  std::uint64_t packets = 0;    // sent for puts, each once
  std::uint64_t repeated = 0;   // sent again
  std::uint64_t lingering = 0;  // asked for, but sent just before
  std::uint64_t nacks = 0;      // requests sent
  std::uint64_t nacks_heard = 0;
  std::uint64_t asked = 0;       // for an acknowledgement, because there was no room
  std::uint64_t answered = 0;    // with one
  std::uint64_t waited = 0;      // packets that found no room in the pool or the window
  std::uint64_t abandoned = 0;   // the same, to a rank that has left or is lost: sent once
  std::uint64_t duplicates = 0;  // packets that had come before
  std::uint64_t beyond = 0;      // too far ahead: dropped
  std::uint64_t misplaced = 0;   // packets for a place outside the region: dropped
  std::uint64_t unsent = 0;      // requests and answers that found no room at all: dropped
  std::uint64_t pieces = 0;      // sent, of packets that were too long for their path
  std::uint64_t probes = 0;      // rounds of probes of a path
  std::uint64_t looked_at = 0;   // timers of peers that are waited for
  bool operator==(const ReliableCounts&) const = default;
};

struct Context {
  explicit Context(const ReliableOptions& given, int own_rank)
      : options(given),
        filter(given.key, own_rank, given.ranks),
        prng(given.seed ^ (static_cast<std::uint64_t>(own_rank) << 32)),
        rank(own_rank),
        now_ns(given.now_ns()) {}

  // The first rank of each host multicasts and receives multicasts.
  bool is_in_group(int any_rank) const { return options.hosts.place(any_rank) == 0; }

  ReliableOptions options;
  wire::PacketFilter filter;
  base::Prng prng;  // of the delays
  int rank;         // this one
  std::int64_t now_ns;
  ReliableCounts counts{};
};

}  // namespace unisono::reliable
