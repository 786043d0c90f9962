// SPDX-License-Identifier: BSD-3-Clause
// Reliable: puts over datagrams that may be lost, doubled and overtaken. Every rank maps memory of
// the same layout (the region); a put goes as packets that carry their place in it, and arriving is
// one copy to there. Nobody acknowledges what is not lost: packets to a peer tell by the way how
// far its own have come, and a sender asks only when it runs out of room. Repair is the receiver's
// business: who waits for a peer, or sees a gap, asks after a time for what it lacks.
//
// A get is a put by the other side: its number is one of the puts', so that it is repeated like
// them.
//
// What it promises: each put's bytes are written once, in no order; its flag is raised after all
// bytes of its message, which are its own and those of the puts without a flag before it to the
// same rank. Messages may overtake each other, so a place must not be put to again before its
// reader said so; the engines' credits see to that (docs/decisions/0009).
//
// No sockets, no clock of its own. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "reliable/group.hpp"
#include "reliable/link.hpp"
#include "reliable/moderation.hpp"
#include "reliable/packet_pool.hpp"
#include "reliable/paths.hpp"
#include "reliable/pieces.hpp"
#include "reliable/retry.hpp"
#include "topology/host_map.hpp"
#include "transport/datagrams.hpp"
#include "transport/multicast_probe.hpp"
#include "transport/transport.hpp"
#include "wire/gate.hpp"

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
  std::uint64_t duplicates = 0;  // packets that had come before
  std::uint64_t beyond = 0;      // too far ahead: dropped
  std::uint64_t misplaced = 0;   // packets for a place outside the region: dropped
  std::uint64_t unsent = 0;      // requests and answers that found no room at all: dropped
  std::uint64_t pieces = 0;      // sent, of packets that were too long for their path
  std::uint64_t probes = 0;      // rounds of probes of a path
  bool operator==(const ReliableCounts&) const = default;
};

class Reliable final : public transport::Transport, private GroupPort {
 public:
  Reliable(std::unique_ptr<transport::Datagrams> datagrams, ReliableOptions options);

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& message) override;
  void get(const transport::Get& wanted) override;
  int progress() override;
  void awaits(int rank) override;

  // Finds out whether the network carries multicast between the group's members. All try at about
  // the same time, before anything is put. Returns at the deadline at the latest. See
  // multicast_probe.hpp.
  transport::MulticastReport probe_multicast(std::int64_t deadline_ns);
  // To every other member of the group at once. Only over datagrams with multicast, and among its
  // members. Multicasts of a rank and its puts to one rank may overtake each other.
  void put_to_all(const transport::Put& message) override;
  void awaits_multicast(int origin) override;
  // The first origin whose multicasts were found not to reach this rank any more; -1: none.
  int unreached_by() const { return group_.unreached_by(); }
  // Whether every rank has all that this one has multicast; asks if that is not known.
  bool all_have_all();

  // Finds out whether the path to that rank carries full datagrams, while progress() is called.
  void probe_path(int rank) { paths_.search(rank, options_.now_ns()); }

  // Makes sure that puts to that rank arrive, although no rank there may wait for them.
  void confirm(int rank);

  // Whether every put is known to have arrived. At the end a rank calls settle() until then, or
  // until its patience ends: it asks those who have not said.
  bool is_settled() const;
  bool settle();
  // That rank has left or is lost: nobody need wait until it has what was put to it, and what it
  // lacks is not repeated.
  void forget(int rank);
  bool has_forgotten(int rank) const {
    const auto& link = links_[static_cast<std::size_t>(rank)];
    return link != nullptr && link->ended;
  }
  // Tells those who sent to this rank how far it has come, so that they need not ask a rank that
  // has left.
  void say_farewell();

  // For how long that rank has been asked repeatedly without any answer; 0 if it has answered. It
  // is the longest possible time if the packets that the rank lacks do not come through to it.
  std::int64_t silence_ns(int rank) const;
  // When progress() has something to do even if nothing comes; far in the future if never.
  std::int64_t next_deadline_ns() const;

  // Counts of received puts: packets, each once, and messages that became whole.
  struct Arrived {
    std::int64_t packets = 0, messages = 0;
    std::uint64_t following = 0;  // packets that the last one has announced
  };
  const Arrived& arrived() const { return arrived_; }
  // Whether something that was put has still to be sent, for want of room.
  bool lacks_room() const { return !backlogged_.empty(); }
  // For so long after progress(), what comes may be left to gather (moderation.hpp).
  std::int64_t pause_ns() const { return moderation_.pause_ns(); }

  int ranks() const { return options_.ranks; }
  const ReliableCounts& counts() const { return counts_; }
  const GroupCounts& group_counts() const { return group_.counts(); }
  const wire::Drops& drops() const { return gate_.drops(); }
  transport::Datagrams& datagrams() { return *datagrams_; }

 private:
  // A packet that the pool does not keep.
  struct LoosePacket {
    int target;
    wire::Envelope envelope;
    std::vector<std::byte> payload;
  };

  Link& link_to(int rank);
  std::uint64_t offset_of(const void* address, std::size_t bytes) const;
  std::uint64_t flag_of(const transport::Put& message) const;  // as in a packet
  std::size_t payload_of(std::size_t most_bytes) const {
    return std::min(payload_bytes_, (most_bytes - wire::kHeaderBytes) / 8 * 8);
  }
  void put_here(const transport::Put& message);

  void submit(Link& link, int target, wire::Header header, std::span<const std::byte> payload);
  bool keep(Link& link, int target, const wire::Envelope& envelope,
            std::span<const std::byte> payload);
  std::uint32_t take_room();
  void drain_backlogs();
  void ask_for_room(Link& link, int rank);
  void flush();
  std::size_t send_some();
  std::size_t send_front();
  std::size_t send_loose();

  int receive_all();
  void handle(const wire::Parsed& packet);
  void handle_numbered(Link& link, int sender, const wire::Parsed& packet);
  void answer_get(int sender, const wire::Parsed& packet);
  bool get_is_valid(const wire::Parsed& packet) const;
  void handle_nack(Link& link, int sender, const wire::Header& header);
  void handle_status(Link& link, int sender, const wire::Header& header);
  bool place_is_valid(const wire::Parsed& packet) const;
  void acknowledge(Link& link, std::uint64_t number);
  void note_gap(Link& link, int rank, bool moved);
  void raise(const WaitingFlag& flag);

  void watch(Link& link, int rank);
  void look_at_timers();
  bool look_at(Link& link, int rank);
  void send_nack(Link& link, int rank);
  wire::Header status_header(Link& link, int rank) const;
  void send_status(Link& link, int rank, bool ask);
  // The next ones: packets that are too long for their path.
  bool is_too_long(int target, std::size_t payload_bytes) const;
  std::size_t most_bytes_to(int target) const;
  void send_in_pieces(int target, const wire::Envelope& envelope,
                      std::span<const std::byte> payload);
  void take_piece(const wire::Parsed& piece);
  void send_probes(const Paths::Round& round);
  void take_report(int sender, const wire::Header& status);
  void tell_origin(int target, const wire::Envelope& envelope, std::size_t payload_bytes);
  void narrow_group(std::size_t most_bytes);
  void send_control(int target, wire::Header header) override;
  void send_packet(int target, const wire::Envelope& envelope,
                   std::span<const std::byte> payload) override;
  void handle_group(const wire::Parsed& packet);
  void handle_group_nack(Link& link, int sender, const wire::Header& header);
  void apply(const wire::Parsed& packet);

  std::unique_ptr<transport::Datagrams> datagrams_;
  ReliableOptions options_;
  transport::Capabilities capabilities_;
  wire::Gate gate_;
  std::size_t payload_bytes_;  // of one packet
  PacketPool pool_;
  base::Prng prng_;
  std::int64_t now_ns_ = 0;
  std::vector<std::unique_ptr<Link>> links_;  // by rank; made when first used
  std::vector<int> watched_;                  // ranks whose links have a timer that runs
  std::vector<int> backlogged_;               // ranks whose links have a backlog
  std::deque<std::uint32_t> queue_;           // packets of the pool, to be sent
  std::deque<LoosePacket> loose_;             // before them
  Group group_;
  std::size_t group_most_bytes_ = Paths::kAny;  // of a datagram to it
  Paths paths_;
  Pieces pieces_;
  ReliableCounts counts_;
  Arrived arrived_;
  Moderation moderation_;
};

}  // namespace unisono::reliable
