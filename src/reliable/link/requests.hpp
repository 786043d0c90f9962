// SPDX-License-Identifier: BSD-3-Clause
// Requests: when a rank asks its peers for packets that it lacks: after a gap among those that have
// come, and while it waits for a peer. One thread at a time.
#pragma once

#include "reliable/link/control.hpp"

namespace unisono::reliable {

class Requests {
 public:
  // All outlive it.
  Requests(Context& context, Links& links, Control& control)
      : context_(context), links_(links), control_(control) {}

  // This rank waits for a put of that one.
  void await(int rank);
  // Something has come. `moved`: the first missing packet is among it.
  void note_arrival(Link& link, int rank, bool moved);
  // Packets before `end` were sent.
  void expect_until(Link& link, int rank, std::uint64_t end);
  // Asks if it is time. Returns whether the timer still runs.
  bool look_at_timer(Link& link, int rank);

 private:
  void ask(Link& link, int rank);

  Context& context_;
  Links& links_;
  Control& control_;
};

}  // namespace unisono::reliable
