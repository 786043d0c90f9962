// SPDX-License-Identifier: BSD-3-Clause
// Control: the packets of a link that carry no data: requests for missing packets, and statuses,
// which say how far both directions have come. Each is taken once, has a number of its own, and is
// not repeated: timers send a new one. Control also knows for how long a peer has not answered. One
// thread at a time.
#pragma once

#include <cstdint>

#include "reliable/link/links.hpp"
#include "reliable/link/outbox.hpp"

namespace unisono::reliable {

class Control {
 public:
  // All outlive it.
  Control(Context& context, Links& links, Outbox& outbox)
      : context_(context), links_(links), outbox_(outbox) {}

  // Numbers a packet, and sends it. If it wants an answer, the peer's silence counts from the
  // first.
  void send(int target, wire::Header header);
  // The same for a question whose answer no rank waits for.
  void send_uncounted(int target, wire::Header header);
  void send_status(Link& link, int rank, bool wants_answer);
  // A status for that rank, to be completed.
  wire::Header status_header(Link& link, int rank) const;

  // False: this packet of a peer has come before.
  static bool take(Link& link, const wire::Header& header);
  // The peer lives. A packet that somebody plays again does not show that.
  static void note_heard(Link& link) { link.asked_ns = 0; }
  // For how long that rank has been asked repeatedly without any answer; 0 if it has answered.
  std::int64_t silence_ns(int rank) const;

 private:
  Context& context_;
  Links& links_;
  Outbox& outbox_;
};

}  // namespace unisono::reliable
