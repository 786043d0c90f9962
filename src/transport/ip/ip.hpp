// SPDX-License-Identifier: BSD-3-Clause
// Internet addresses and endpoints (address and port) as values, IPv4 and IPv6: read, written, and
// turned into what the system calls want. Pure functions; any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::transport {

enum class Family : std::uint8_t { v4, v6 };

struct IpAddress {
  Family family = Family::v4;
  std::array<std::uint8_t, 16> bytes{};  // as on the wire; v4: the first four

  int bits() const { return family == Family::v4 ? 32 : 128; }
  bool is_loopback() const;
  bool is_link_local() const;
  bool is_multicast() const;
  bool operator==(const IpAddress&) const = default;
};

// An IPv4 address in network order, as in sockaddr_in.
IpAddress ipv4_address(std::uint32_t address);

// Numeric forms only: a name may mean another address on each host. Error of code argument.
base::Result<IpAddress> parse_ip(std::string_view text);
std::string ip_text(const IpAddress& address);

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// "10.0.0.1:4000", "[fd00::1]:4000"; without a port, the port is 0.
base::Result<Endpoint> parse_endpoint(std::string_view text);
std::string endpoint_text(const Endpoint& endpoint);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// `interface_index` is where a link-local (or link-wide multicast) address of IPv6 is meant; it is
// left out for the others.
SocketAddress socket_address(const Endpoint& endpoint, unsigned interface_index);
// 0.0.0.0:0 if the family is not IP.
Endpoint endpoint_of(const sockaddr_storage& address);

}  // namespace unisono::transport
