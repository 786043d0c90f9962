// SPDX-License-Identifier: BSD-3-Clause
// Interfaces: which addresses this host has, and which of them a job uses: the one from which the
// kernel routes to the peers, if the user's list allows it. No name of an interface is guessed.
// Control path; choose_address() is pure, the others ask the system; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"
#include "transport/ip/network_list.hpp"

namespace unisono::transport {

struct LocalAddress {
  std::string interface;
  unsigned index = 0;  // of the interface
  IpAddress address;
  int mtu = 1500;
  bool multicast = false;  // the interface says that it does
  bool operator==(const LocalAddress&) const = default;
};

// Those of interfaces that are up. Errors: system.
base::Result<std::vector<LocalAddress>> local_addresses();

// The address from which this host sends to `peer`. No packet is sent. Errors: system (no route).
using RouteQuestion = std::function<base::Result<IpAddress>(const IpAddress& peer)>;
base::Result<IpAddress> source_towards(const IpAddress& peer);

struct ChosenAddress {
  LocalAddress local;
  std::string why;  // for the log: "route to 10.0.0.2"
};

// Of `locals`, what is the source of the routes to the most `peers`; where the list does not allow
// that, the address of the peers' family which the list prefers. Errors: argument (no peer, or the
// list leaves nothing: the message tells what there is), and what `route` answers if it knows no
// way to any peer.
base::Result<ChosenAddress> choose_address(std::span<const IpAddress> peers,
                                           const NetworkList& allowed,
                                           std::span<const LocalAddress> locals,
                                           const RouteQuestion& route);

}  // namespace unisono::transport
