// SPDX-License-Identifier: BSD-3-Clause
// Group: reliable multicast. A packet goes to all ranks at once; who lacks it asks its parent in
// the repair tree of the packet's origin. The parent repeats it from what it keeps, or, lacking it
// too, asks its own parent and passes on what comes. So the origin, which alone keeps everything,
// is asked by its children only, and last. It asks the group, when it runs out of room or has to
// know, how far everybody is; the answers are combined on the way up the same tree, the worst wins,
// and the origin gets one from each child. It asks a child that does not answer again by unicast,
// and that one asks its own children that have not answered. A request is an answer, too, if no
// rank is below the one that sends it.
//
// The network may cease to carry multicast at any time, between all ranks or some, in one direction
// or both. A rank that an origin's multicasts no longer reach finds that out (MulticastWatch) and
// says so in its requests and answers. From then on its parent passes on to it by unicast whatever
// the origin sends, as soon as it comes. So all goes on, down the tree if need be.
//
// No sockets and no clock. One object belongs to one rank; one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "reliable/link.hpp"
#include "reliable/repair_tree.hpp"
#include "reliable/retry.hpp"
#include "wire/gate.hpp"

namespace unisono::reliable {

inline constexpr int kMostArity = 8;

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
  std::uint64_t duplicates = 0;
  std::uint64_t beyond = 0;
  std::uint64_t waited = 0;     // packets that found no room in the window
  std::uint64_t passed_on = 0;  // puts and queries sent to a child that multicast does not reach
  std::uint64_t looked_at = 0;  // timers of origins
  bool operator==(const GroupCounts&) const = default;
};

// The answers of the children to one question.
class Answers {
 public:
  void clear() { all_.clear(); }
  // A child may say several things; the furthest holds.
  void note(int child, std::uint64_t value);
  // Those of the children that have not answered.
  std::vector<int> missing(std::vector<int> children) const;
  // The worst of them and `own`; nullopt while one of `children` has not answered.
  std::optional<std::uint64_t> worst(std::span<const int> children, std::uint64_t own) const;

 private:
  const std::uint64_t* find(int child) const;

  std::vector<std::pair<int, std::uint64_t>> all_;
};

// Whether the multicasts of one origin still reach this rank. If its packets repeatedly come by
// unicast alone, the network does not carry its multicasts any more. Multicast then counts as lost
// for the rest of the job. A burst of losses is one occasion, however many packets it takes.
class MulticastWatch {
 public:
  // So many occasions in a row: at a loss of 10 %, by chance once in 10^16 packets.
  static constexpr int kMostMissed = 16;

  void note_multicast() { missed_ = 0; }
  // A packet has come by unicast that should have come by multicast before. Occasions are
  // `apart_ns` apart at least. True if multicast is lost, and was not before.
  bool note_unicast(std::int64_t now_ns, std::int64_t apart_ns);
  bool is_lost() const { return lost_; }

 private:
  int missed_ = 0;
  bool lost_ = false;
  std::int64_t missed_ns_ = std::numeric_limits<std::int64_t>::min() / 2;
};

// How packets get out.
class GroupPort {
 public:
  virtual ~GroupPort() = default;
  // target: as transport::Outgoing::target.
  virtual void send_packet(int target, const wire::Envelope& envelope,
                           std::span<const std::byte> payload) = 0;
  // A request or an answer: gets its number from the link.
  virtual void send_control(int target, wire::Header header) = 0;
};

// The last packets of one origin, by number.
class KeptPackets {
 public:
  struct Packet {
    std::uint64_t number = 0;
    bool valid = false;
    wire::Header header{};
    std::uint32_t bytes = 0;
    std::array<std::int64_t, kMostArity> sent_ns{};  // by number of the child: the last time
  };

  // Takes the memory with the first packet: most ranks are leaves and keep nothing.
  KeptPackets(std::uint64_t packets, std::size_t payload_bytes)
      : most_(packets), payload_bytes_(payload_bytes) {}

  void keep(const wire::Header& header, std::span<const std::byte> payload, std::int64_t now_ns);
  Packet* find(std::uint64_t number) {
    if (packets_.empty()) return nullptr;
    Packet& packet = packets_[number % packets_.size()];
    return packet.valid && packet.number == number ? &packet : nullptr;
  }
  std::span<const std::byte> payload(const Packet& packet) const {
    return std::span(bytes_).subspan(packet.number % packets_.size() * payload_bytes_,
                                     packet.bytes);
  }

 private:
  std::uint64_t most_;
  std::size_t payload_bytes_;
  std::vector<Packet> packets_;
  std::vector<std::byte> bytes_;
};

class Group {
 public:
  Group(const GroupOptions& options, const wire::Gate& gate, GroupPort& port, std::uint64_t seed);

  // One packet of a message to all; `header` has place, flag, value and position.
  void put(wire::Header header, std::span<const std::byte> payload, std::int64_t now_ns);

  // A put of another rank to the group, or its repetition: whether it is new, and the flag that may
  // be raised with it.
  struct Taken {
    bool fresh = false;
    const WaitingFlag* flag = nullptr;
  };
  Taken take_put(const wire::Parsed& packet, std::int64_t now_ns);
  void take_query(const wire::Header& header, std::int64_t now_ns);
  // Whether it had packets with a payload to repeat.
  bool take_nack(const wire::Header& header, std::int64_t now_ns);
  void take_answer(const wire::Header& header, std::int64_t now_ns);

  // Whether the two take part, and the sender asks this rank for what the origin has sent.
  bool is_child(int origin, int sender) const;
  bool has(int rank) const { return options_.tree.has(rank); }
  // That rank has left: it lacks nothing any more, and those below it turn to those above.
  void forget(int rank, std::int64_t now_ns);

  // This rank waits for a multicast of `origin`.
  void awaits(int origin, std::int64_t now_ns);
  // Asks how far everybody is, until all have what this rank has sent.
  void ask(std::int64_t now_ns);
  bool is_settled() const { return lacking_ == next_; }
  // The first origin whose multicasts were found not to reach this rank; -1: there is none.
  int unreached_by() const { return unreached_by_; }

  void look_at_timers(std::int64_t now_ns);
  std::int64_t next_deadline_ns() const;
  const GroupCounts& counts() const { return counts_; }

 private:
  struct Wanted {
    std::uint64_t number;
    int child;
    std::int64_t expires_ns;
  };
  // This rank's knowledge of one origin's packets.
  struct Stream {
    explicit Stream(const GroupOptions& options)
        : kept(options.repair_packets, options.payload_bytes) {}
    ReceivingSide receiving;
    KeptPackets kept;
    std::vector<Wanted> wanted;  // by children, of what this rank lacks
    std::int64_t passed_up_ns = std::numeric_limits<std::int64_t>::min() / 2;
    // The origin's latest question, and the answers of the children.
    std::uint64_t query = 0;
    bool asked = true;  // this rank has heard it, not only of it
    bool answered = true;
    Answers answers;
    std::int64_t passed_down_ns = std::numeric_limits<std::int64_t>::min() / 2;
    MulticastWatch watch;
    std::vector<int> unreached;  // children that the origin's multicasts do not reach
    bool watched = false;        // its timer runs
  };
  // A packet that has its number and waits for room in the window.
  struct Waiting {
    wire::Header header;
    std::vector<std::byte> payload;
  };

  int rank() const { return static_cast<int>(gate_.identity().rank); }
  Stream& stream_of(int origin);
  void watch(Stream& stream, int origin);
  void send_out(const wire::Header& header, std::span<const std::byte> payload,
                std::int64_t now_ns);
  void repair(KeptPackets& kept, KeptPackets::Packet& packet, int child, std::int64_t now_ns);
  void send_by_unicast(std::span<const int> children, wire::Header header,
                       std::span<const std::byte> payload);
  void pass_on(Stream& stream, const wire::Parsed& packet, bool fresh);
  void pass_down(Stream& stream, const wire::Header& query, bool fresh, std::int64_t now_ns);
  void note_way(Stream& stream, const wire::Header& header, bool fresh, std::int64_t now_ns);
  void note_child(const wire::Header& header);
  void note_floor(const wire::Header& nack, std::int64_t now_ns);
  void forget_expired(Stream& stream, std::int64_t now_ns) const;
  void note_gap(Stream& stream, int origin, bool moved, std::int64_t now_ns);
  bool look_at(Stream& stream, int origin, std::int64_t now_ns);
  void send_nacks(const Stream& stream, int origin);
  void answer_if_complete(Stream& stream, int origin);
  void note_reached(std::uint64_t number, std::int64_t now_ns);
  void look_at_answers(std::int64_t now_ns);
  wire::Header query_header() const;
  void send_query();
  void ask_again();
  bool want(Stream& stream, std::uint64_t number, int child, std::int64_t now_ns) const;
  void send_nack(const Stream& stream, int origin, std::uint64_t place, std::uint64_t mask);

  GroupOptions options_;
  const wire::Gate& gate_;
  GroupPort& port_;
  base::Prng prng_;
  GroupCounts counts_;

  // As an origin.
  std::uint64_t next_ = 1;     // number of the next packet
  std::uint64_t unsent_ = 1;   // the first in the backlog
  std::uint64_t lacking_ = 1;  // the first that somebody may lack
  KeptPackets sent_;
  std::deque<Waiting> backlog_;
  std::uint64_t query_ = 0;
  RetryTimer ask_;
  Answers answers_;
  std::vector<int> unreached_;  // children that this rank's multicasts do not reach

  std::vector<std::unique_ptr<Stream>> streams_;  // by origin; made when first used
  std::vector<int> watched_;                      // origins whose streams have a timer that runs
  int unreached_by_ = -1;
};

}  // namespace unisono::reliable
