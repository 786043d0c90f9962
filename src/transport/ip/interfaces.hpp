// SPDX-License-Identifier: BSD-3-Clause
// Interfaces: the addresses of this host, and the choice of those that a job uses. The kernel's
// routes to the peers decide, if the user's list allows their source address. No name of an
// interface is guessed. Control path; choose_address() is pure, the others ask the system; any
// thread.
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
  unsigned index = 0;  // index of the interface
  IpAddress address;
  int mtu = 1500;
  bool multicast = false;  // the interface says that it does
  bool operator==(const LocalAddress&) const = default;
};

// Addresses of interfaces that are up. Errors: system.
base::Result<std::vector<LocalAddress>> local_addresses();

// The address from which this host sends to `peer`. No packet is sent. Errors: system (no route).
using RouteQuestion = std::function<base::Result<IpAddress>(const IpAddress& peer)>;
base::Result<IpAddress> source_towards(const IpAddress& peer);

struct ChosenAddress {
  LocalAddress local;
  std::string why;  // for the log: "route to 10.0.0.2"
};

// Chooses from `locals` the address that is the source of the routes to the most `peers`. If the
// list forbids it, chooses the address of the peers' family that the list prefers. Without a peer,
// or if the list leaves nothing, the error is argument and names the available addresses. If
// `route` knows no way to any peer, its error is returned.
base::Result<ChosenAddress> choose_address(std::span<const IpAddress> peers,
                                           const NetworkList& allowed,
                                           std::span<const LocalAddress> locals,
                                           const RouteQuestion& route);

}  // namespace unisono::transport
