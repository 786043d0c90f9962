// SPDX-License-Identifier: BSD-3-Clause
// NarrowPaths: finds paths that carry less than the interfaces at their ends, by probes of several
// lengths (paths.hpp), and repeats in pieces what was too long for them. One thread at a time.
#pragma once

#include <cstddef>

#include "reliable/link/control.hpp"
#include "reliable/path/datagram_sizes.hpp"
#include "transport/datagrams.hpp"

namespace unisono::reliable {

class NarrowPaths {
 public:
  // All outlive it.
  NarrowPaths(Context& context, Links& links, Outbox& outbox, Control& control,
              DatagramSizes& sizes, transport::Datagrams& datagrams)
      : context_(context),
        links_(links),
        outbox_(outbox),
        control_(control),
        sizes_(sizes),
        datagrams_(datagrams) {}

  // A long packet to that rank may have vanished: finds out whether the path carries it.
  void search(int rank) { sizes_.paths().search(rank, context_.now_ns); }
  // Sends the probes that are due.
  void send_probes();
  // A probe of a peer has come.
  static void take_probe(Link& link, const wire::Header& probe);
  // A peer's status says which probes have come there.
  void take_report(int sender, const wire::Header& status);
  // A multicast is repeated to that rank by unicast.
  void note_repair(int target, const wire::Envelope& envelope, std::size_t payload_bytes);

 private:
  void send_round(const Paths::Round& round);
  void repeat_too_long(int sender);

  Context& context_;
  Links& links_;
  Outbox& outbox_;
  Control& control_;
  DatagramSizes& sizes_;
  transport::Datagrams& datagrams_;
};

}  // namespace unisono::reliable
