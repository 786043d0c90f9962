// SPDX-License-Identifier: BSD-3-Clause
// The address of a rendezvous: `unix:@NAME`, an abstract Unix socket (no file; it ends with its
// process), or `tcp:HOST:PORT`. Any thread.
//
// A launcher gives its ranks no secret, so another user could take a name that is derived from what
// the launcher gives. Such a name is a prefix only (Kind::unix_prefix): the listener appends a
// random number, and the other ranks look for it among the sockets of this network namespace. They
// ignore sockets of other users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::bootstrap {

inline constexpr std::size_t kMostNameBytes = 107;  // of an abstract socket: sun_path less one

struct Address {
  enum class Kind { unix_name, unix_prefix, tcp };
  Kind kind = Kind::unix_name;
  std::string name;        // abstract name or its prefix, without '@'; or host
  std::uint16_t port = 0;  // tcp; 0 when listening: any free one
  // tcp: what resolve() has found for the name.
  std::optional<transport::SocketAddress> resolved{};
};

// Error of code argument for anything but the two forms above.
base::Result<Address> parse_address(std::string_view text);
std::string address_text(const Address& address);

// Where a host relay (host_relay.hpp) listens, by the random number in its Hello:
// "unisono-relay-<number>".
Address relay_address(std::uint64_t relay_socket);

// "unisono-<uid>-<16 random hexadecimal digits>"
base::Result<Address> random_unix_address();

}  // namespace unisono::bootstrap
