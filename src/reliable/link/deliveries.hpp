// SPDX-License-Identifier: BSD-3-Clause
// Deliveries: what becomes of numbered packets until their receivers have them. They wait in a
// backlog while there is no room in the outbox or in the peer's window. A rank without room asks
// its peers how far they have come. A peer that has left lacks nothing: packets to it leave if
// there is room, and never wait. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reliable/link/control.hpp"

namespace unisono::reliable {

class Deliveries {
 public:
  // All outlive it.
  Deliveries(Context& context, Links& links, Outbox& outbox, Control& control)
      : context_(context), links_(links), outbox_(outbox), control_(control) {}

  // Seals a packet with the link's next number, and lets it leave as soon as there is room.
  void submit(Link& link, int target, const wire::Header& header,
              std::span<const std::byte> payload);
  // The peer has all before `number`.
  void acknowledge(Link& link, std::uint64_t number);
  // Repeats what a peer asks for, except packets that left just before. Returns whether some of
  // them had a payload.
  bool take_request(Link& link, const wire::Header& request);

  // Asks that rank how far it has come until it has everything, although no rank there may wait.
  void confirm(int rank);
  bool is_settled() const;
  // The same for every rank that lacks something.
  void ask_unsettled();
  // That rank has left or is lost.
  void forget(int rank);
  bool has_forgotten(int rank) const {
    const Link* const link = links_.find(rank);
    return link != nullptr && link->ended;
  }

  // Whether something still has to leave, for want of room.
  bool lack_room() const { return !backlogged_.empty(); }
  void drain_backlogs();
  // Asks again if it is time. Returns whether the timer still runs.
  bool look_at_timer(Link& link, int rank);

 private:
  bool keep(Link& link, int target, const wire::Header& header, std::span<const std::byte> payload);
  void submit_to_ended(Link& link, int target, const wire::Header& header,
                       std::span<const std::byte> payload);
  bool make_room();
  void ask(Link& link, int rank);

  Context& context_;
  Links& links_;
  Outbox& outbox_;
  Control& control_;
  std::vector<int> backlogged_;  // ranks whose links have a backlog
};

}  // namespace unisono::reliable
