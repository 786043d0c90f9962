// SPDX-License-Identifier: BSD-3-Clause
// Reliable: puts over datagrams that may be lost, doubled and overtaken. Every rank maps memory of
// the same layout (the region). Each packet of a put carries its place in it, and the receiver
// copies it there, once. Packets that arrive are not acknowledged by packets of their own: a packet
// to a peer also says how far the peer's have come. A sender asks only when it runs out of room.
// A receiver that waits for a peer, or sees a gap, asks after a time for the packets that it lacks.
//
// A get is a put by the other side. It has a number among the puts, so it is repeated as they are.
//
// Each put's bytes are written once, in no order. Its flag is raised after all bytes of its
// message: its own, and those of the puts without a flag before it to the same rank. Messages may
// overtake each other. So a sender must not put to a place again before the reader has allowed it.
// The engines' credits ensure that (docs/decisions/0009).
//
// It has no sockets and no clock of its own. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "reliable/context.hpp"
#include "reliable/group/group.hpp"
#include "reliable/link/control.hpp"
#include "reliable/link/deliveries.hpp"
#include "reliable/link/links.hpp"
#include "reliable/link/outbox.hpp"
#include "reliable/link/requests.hpp"
#include "reliable/moderation.hpp"
#include "reliable/path/datagram_sizes.hpp"
#include "reliable/path/narrow_paths.hpp"
#include "reliable/path/pieces.hpp"
#include "reliable/region.hpp"
#include "transport/datagrams.hpp"
#include "transport/multicast_probe.hpp"
#include "transport/transport.hpp"

namespace unisono::reliable {

class Reliable final : public transport::Transport {
 public:
  Reliable(std::unique_ptr<transport::Datagrams> datagrams, const ReliableOptions& options);

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& message) override;
  void get(const transport::Get& wanted) override;
  int progress() override { return progress(true); }
  // Without `receives` it is known that no datagram has come.
  int progress(bool receives);
  void awaits(int rank) override;

  // Finds out whether the network carries multicast between the group's members. All try at about
  // the same time, before anything is put. Returns at the deadline at the latest. See
  // multicast_probe.hpp.
  transport::MulticastReport probe_multicast(std::int64_t deadline_ns);
  // To every other member of the group at once. Only over datagrams with multicast, and among its
  // members. Multicasts of a rank and its puts to one rank may overtake each other.
  void put_to_all(const transport::Put& message) override;
  void awaits_multicast(int origin) override { group_.awaits(origin, context_.now_ns); }
  const Group& group() const { return group_; }

  // Finds out whether the path to that rank carries full datagrams, while progress() is called.
  void probe_path(int rank);

  // Whether every put is known to have arrived. At the end a rank calls settle() until then, or
  // until its patience ends: it asks those who have not said.
  bool is_settled() const { return group_.is_settled() && deliveries_.is_settled(); }
  bool settle();
  // That rank has left or is lost: nobody need wait until it has what was put to it, and what it
  // lacks is not repeated. Multicasts that a lost rank may lack have failed (Group).
  void forget(int rank, Departure how = Departure::lost);
  // Tells those who sent to this rank how far it has come, so that they need not ask a rank that
  // has left.
  void send_last_statuses();

  // For how long that rank has been asked repeatedly without any answer; 0 if it has answered. It
  // is the longest possible time if the packets that the rank lacks do not come through to it.
  std::int64_t silence_ns(int rank) const;
  // When progress() has something to do even if nothing comes; far in the future if never.
  std::int64_t next_deadline_ns() const;

  using Arrived = Region::Arrived;
  const Arrived& arrived() const { return region_.arrived(); }
  // For so long after progress(), what comes may be left to gather (moderation.hpp).
  std::int64_t pause_ns() const { return moderation_.pause_ns(); }

  const topology::HostMap& hosts() const { return context_.options.hosts; }
  const ReliableCounts& counts() const { return context_.counts; }
  const wire::Drops& drops() const { return context_.filter.drops(); }
  transport::Datagrams& datagrams() { return *datagrams_; }
  Outbox& outbox() { return outbox_; }
  // Its confirm() makes sure that puts to a rank arrive, although no rank there may wait for them.
  Deliveries& deliveries() { return deliveries_; }

 private:
  void take(const wire::Parsed& packet);
  void take_numbered(Link& link, const wire::Parsed& packet);
  void take_control(Link& link, const wire::Header& header);
  void take_multicast(const wire::Parsed& packet);

  std::unique_ptr<transport::Datagrams> datagrams_;
  Context context_;
  transport::Capabilities capabilities_;
  Region region_;
  DatagramSizes sizes_;
  Links links_;
  Outbox outbox_;
  Control control_;
  Requests requests_;
  Deliveries deliveries_;
  NarrowPaths narrow_;
  Pieces pieces_;
  Group group_;
  Moderation moderation_;
  friend class Bulk;                      // its puts may answer gets
  transport::Transport* answers_ = this;  // by which gets of other ranks are answered
};

}  // namespace unisono::reliable
