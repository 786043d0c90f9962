// SPDX-License-Identifier: BSD-3-Clause
// The address of a rendezvous: `unix:@NAME`, an abstract Unix socket (no file; it ends with its
// process), or `tcp:HOST:PORT`. Parsing, listening, connecting, and the peer of a connection. All
// sockets are close-on-exec and non-blocking. Any thread.
//
// A launcher gives its ranks no secret, so another user could take a name that is derived from what
// the launcher gives. Such a name is a prefix only (Kind::unix_prefix): the listener appends a
// random number, and the other ranks look for it among the sockets of this network namespace. They
// ignore sockets of other users.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::bootstrap {

struct Address {
  enum class Kind { unix_name, unix_prefix, tcp };
  Kind kind = Kind::unix_name;
  std::string name;        // abstract name or its prefix, without '@'; or host
  std::uint16_t port = 0;  // tcp; 0 when listening: any free one
};

// Error of code argument for anything but the two forms above.
base::Result<Address> parse_address(std::string_view text);
std::string address_text(const Address& address);

// Where a host relay (host_relay.hpp) listens, by the random number in its Hello:
// "unisono-relay-<number>".
Address relay_address(std::uint64_t relay_socket);

// "unisono-<uid>-<16 random hexadecimal digits>"
base::Result<Address> random_unix_address();

// A listening socket. Replaces a port of 0 by the one taken, and a prefix by the whole name.
base::Result<base::Descriptor> listen_at(Address& address);

struct ConnectAttempt {
  base::Descriptor socket;  // invalid: not connected
  bool busy = false;        // a process listens, but accepts nothing at present
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
// The numeric address of a tcp address, as this host resolves it.
base::Result<transport::IpAddress> ip_of(const Address& address);

// A number for the running kernel and the calling thread's network namespace, which is as far as
// abstract Unix sockets reach. A hostname would not do: two hosts may share one.
base::Result<HostId> own_host_id();
// From the kernel's random number generator.
base::Result<Nonce> random_nonce();
base::Result<std::uint64_t> random_number();
// 32 hexadecimal digits, fit for UNISONO_JOB_KEY.
base::Result<std::string> random_job_key();

using base::system_error;

}  // namespace unisono::bootstrap
