// SPDX-License-Identifier: BSD-3-Clause
// Sockets at addresses of rendezvous: listening, connecting, and the peer of a connection. All
// sockets are close-on-exec and non-blocking. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::bootstrap {

// Asks the name service for the host of a tcp address, unless that is numeric. The functions below
// need this first. Errors: timeout (the name service has not answered within that time), argument
// (the host is not known), resources (no thread).
base::Status resolve(Address& address, std::int64_t timeout_ns);

// A listening socket. Replaces a port of 0 by the one taken, and a prefix by the whole name.
base::Result<base::Descriptor> listen_at(Address& address);

struct ConnectAttempt {
  base::Descriptor socket;  // invalid: not connected
  bool busy = false;        // a process listens, but accepts nothing at present
  int unreachable = 0;      // EHOSTUNREACH or ENETUNREACH: there is no route, perhaps only not yet
  int others = 0;           // sockets of other users with such a name
};
// With TCP, waits for the peer until the deadline.
base::Result<ConnectAttempt> attempt_connect(const Address& address, std::int64_t deadline_ns);
// The same; nullopt: not connected.
base::Result<std::optional<base::Descriptor>> try_connect(const Address& address,
                                                          std::int64_t deadline_ns);
// Whether the peer of a Unix socket belongs to this user.
bool is_of_own_user(const base::Descriptor& socket);

struct Peer {
  pid_t pid = 0;  // of the process that connected (or that listens), in this process's namespace
  uid_t uid = 0;
};
// The peer of a connected Unix socket, as the kernel reports it.
base::Result<Peer> peer_of(const base::Descriptor& socket);

// The numeric address of the peer of a connected TCP socket; "?" if it has ended.
std::string peer_ip_text(const base::Descriptor& socket);
// The numeric address of a tcp address.
base::Result<transport::IpAddress> ip_of(const Address& address);

}  // namespace unisono::bootstrap
