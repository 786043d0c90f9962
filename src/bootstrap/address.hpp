// SPDX-License-Identifier: BSD-3-Clause
// Where a rendezvous is: `unix:@NAME`, an abstract Unix socket (no file; gone with its process), or
// `tcp:HOST:PORT`. Parsing, listening, connecting, and who is at the other end. All sockets are
// close-on-exec and non-blocking. Any thread.
//
// A launcher tells its ranks no secret, so a name that follows from what it tells could be taken by
// another user. Such a name is a prefix only (Kind::unix_prefix): the listener appends a random
// number, and the others look for it among the sockets of this network namespace. Sockets of other
// users are passed over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "transport/udp/ip.hpp"

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

// Where a gate (gate.hpp) listens, by the random number in its Hello: "unisono-gate-<number>".
Address gate_address(std::uint64_t door);

// "unisono-<uid>-<16 random hexadecimal digits>"
base::Result<Address> random_unix_address();

// A listening socket; a port of 0 becomes the one taken, a prefix the whole name.
base::Result<base::Descriptor> listen_at(Address& address);

struct ConnectAttempt {
  base::Descriptor socket;  // invalid: not connected
  bool busy = false;        // somebody listens, but accepts nobody at present
  int others = 0;           // sockets of other users that have such a name
};
// TCP waits for the answer until the deadline.
base::Result<ConnectAttempt> attempt_connect(const Address& address, std::int64_t deadline_ns);
// The same; empty if not connected.
base::Result<std::optional<base::Descriptor>> try_connect(const Address& address,
                                                          std::int64_t deadline_ns);
// Whether a Unix socket's other end belongs to this user.
bool is_of_own_user(const base::Descriptor& socket);

struct Peer {
  pid_t pid = 0;  // of the process that connected (or that listens), in this process's namespace
  uid_t uid = 0;
};
// Who is at the other end of a connected Unix socket, as the kernel vouches for it.
base::Result<Peer> peer_of(const base::Descriptor& socket);

// The numeric address of who is at the other end of a connected TCP socket; "?" if it has gone.
std::string peer_ip_text(const base::Descriptor& socket);
// The numeric address that a tcp address stands for here.
base::Result<transport::IpAddress> ip_of(const Address& address);

// Of what the calling thread's abstract Unix sockets reach: the running kernel and the network
// namespace. Not a hostname, which two hosts may share and one host may have several of.
base::Result<HostId> own_host_id();
// From the kernel's generator of random numbers.
base::Result<Nonce> random_nonce();
base::Result<std::uint64_t> random_number();
// 32 hexadecimal digits, fit for UNISONO_JOB_KEY.
base::Result<std::string> random_job_key();

using base::system_error;

}  // namespace unisono::bootstrap
