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
// A member that is lost does not answer any more. What the origin did not know it to have has
// failed (Acknowledgement). If a rank on the way up learns of the loss before the origin does, its
// answer says that a member was passed over.
//
// The network may cease to carry multicast at any time, between all ranks or some, in one direction
// or both. A rank that an origin's multicasts no longer reach finds that out (MulticastWatch) and
// says so in its requests and answers. From then on its parent passes on to it by unicast whatever
// the origin sends, as soon as it comes. So all goes on, down the tree if need be.
//
// Own multicasts are the MulticastSender's, those of others the MulticastReceiver's.
//
// No sockets and no clock. One object belongs to one rank; one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "reliable/group/group_context.hpp"
#include "reliable/group/multicast_receiver.hpp"
#include "reliable/group/multicast_sender.hpp"

namespace unisono::reliable {

class Group {
 public:
  Group(const GroupOptions& options, const wire::PacketFilter& filter, const GroupPackets& packets,
        std::uint64_t seed);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // One packet of a message to all; `header` has place, flag, value and position.
  void put(const wire::Header& header, std::span<const std::byte> payload, std::int64_t now_ns) {
    sender_.put(header, payload, now_ns);
  }
  // See MulticastReceiver.
  using Taken = MulticastReceiver::Taken;
  Taken take_put(const wire::Parsed& packet, std::int64_t now_ns) {
    return receiver_.take_put(packet, now_ns);
  }
  void take_query(const wire::Header& query, std::int64_t now_ns) {
    receiver_.take_query(query, now_ns);
  }
  // A request of a child. Returns whether this rank had packets with a payload to repeat.
  bool take_request(const wire::Header& request, std::int64_t now_ns);
  void take_answer(const wire::Header& answer, std::int64_t now_ns);

  // Whether the two take part, and the sender asks this rank for what the origin has sent.
  bool is_child(int origin, int sender) const;
  bool has(int rank) const { return context_.options.tree.has(rank); }
  // That rank is gone: nobody waits for it any more, and those below it turn to those above. If it
  // is lost, what it may lack has failed.
  void forget(int rank, Departure how, std::int64_t now_ns);

  // This rank waits for a multicast of `origin`.
  void awaits(int origin, std::int64_t now_ns) { receiver_.awaits(origin, now_ns); }
  // Asks how far all are, until all have what this rank has sent.
  void ask(std::int64_t now_ns) { sender_.ask(now_ns); }
  bool is_settled() const { return sender_.is_settled(); }
  // The combined acknowledgement of this rank's multicast packet with that number. It becomes known
  // while ask() is called: all members have it, or it has failed because one is lost.
  std::uint64_t last() const { return sender_.last(); }
  Acknowledgement acknowledgement(std::uint64_t number) const {
    return sender_.acknowledgement(number, number);
  }
  // A message of several packets has the worst of their acknowledgements.
  Acknowledgement acknowledgement(std::uint64_t first, std::uint64_t last) const {
    return sender_.acknowledgement(first, last);
  }
  // The first packet of this rank that some living member may lack.
  std::uint64_t lacking() const { return sender_.lacking(); }
  // The first origin whose multicasts were found not to reach this rank; -1: there is none.
  int unreached_by() const { return receiver_.unreached_by(); }

  void look_at_timers(std::int64_t now_ns);
  std::int64_t next_deadline_ns() const;
  const GroupCounts& counts() const { return context_.counts; }

 private:
  GroupContext context_;
  MulticastSender sender_;
  MulticastReceiver receiver_;
};

}  // namespace unisono::reliable
