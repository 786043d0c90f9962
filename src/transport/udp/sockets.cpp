// SPDX-License-Identifier: BSD-3-Clause
// Making the sockets, option by option (sockets.hpp). Control path.
#include "transport/udp/sockets.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace unisono::transport {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// Newer than the C library's headers on some systems; the numbers are the kernel's.
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

Status set(const Descriptor& socket, int level, int option, int value, std::string_view name) {
  if (setsockopt(socket.get(), level, option, &value, sizeof(value)) == 0) return base::success();
  return socket_error(fmt::format("setsockopt {}={}", name, value), errno);
}

int get(const Descriptor& socket, int option) {
  int value = 0;
  socklen_t length = sizeof(value);
  return getsockopt(socket.get(), SOL_SOCKET, option, &value, &length) == 0 ? value : 0;
}

Result<Descriptor> new_socket(const LocalAddress& local, int buffer_bytes) {
  const bool v4 = local.address.family == Family::v4;
  Descriptor socket(
      ::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket_error("socket", errno);
  if (!v4) UNISONO_TRY(set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"));
  // Path MTU messages (ICMP "too big") may be forged and are ignored. The interface's MTU holds,
  // and routers may fragment longer datagrams.
  if (v4) {
    UNISONO_TRY(set(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT, "IP_MTU_DISCOVER"));
  } else {
    UNISONO_TRY(
        set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_OMIT, "IPV6_MTU_DISCOVER"));
  }
  // The administrator's limit (net.core.rmem_max, wmem_max) stands; smaller buffers are slower, but
  // correct.
  static_cast<void>(set(socket, SOL_SOCKET, SO_RCVBUF, buffer_bytes, "SO_RCVBUF"));
  static_cast<void>(set(socket, SOL_SOCKET, SO_SNDBUF, buffer_bytes, "SO_SNDBUF"));
  // Each datagram then reports how many the kernel dropped because a buffer was full. Kernels that
  // lack the option (gVisor, emulators) repair losses as well, but do not count these.
  static_cast<void>(set(socket, SOL_SOCKET, SO_RXQ_OVFL, 1, "SO_RXQ_OVFL"));
  return socket;
}

Status bind_to(const Descriptor& socket, const Endpoint& endpoint, unsigned interface_index) {
  const SocketAddress address = socket_address(endpoint, interface_index);
  if (bind(socket.get(), address.get(), address.length) == 0) return base::success();
  const std::string_view hint =
      errno == EADDRINUSE ? " (another process has the port; give another, or 0 for any)" : "";
  return socket_error(fmt::format("cannot bind to {}{}", endpoint_text(endpoint), hint), errno);
}

Status join_v4(const Descriptor& socket, const LocalAddress& local, const IpAddress& group) {
  ip_mreqn membership{};
  std::memcpy(&membership.imr_multiaddr, group.bytes.data(), sizeof(membership.imr_multiaddr));
  std::memcpy(&membership.imr_address, local.address.bytes.data(), sizeof(membership.imr_address));
  membership.imr_ifindex = static_cast<int>(local.index);
  if (setsockopt(socket.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership)) !=
      0) {
    return socket_error(fmt::format("cannot join {} on {}", ip_text(group), local.interface),
                        errno);
  }
  // Otherwise the socket would receive all groups that any process of this host has joined.
  return set(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL");
}

Status join_v6(const Descriptor& socket, const LocalAddress& local, const IpAddress& group) {
  ipv6_mreq membership{};
  std::memcpy(&membership.ipv6mr_multiaddr, group.bytes.data(),
              sizeof(membership.ipv6mr_multiaddr));
  membership.ipv6mr_interface = local.index;
  if (setsockopt(socket.get(), IPPROTO_IPV6, IPV6_JOIN_GROUP, &membership, sizeof(membership)) !=
      0) {
    return socket_error(fmt::format("cannot join {} on {}", ip_text(group), local.interface),
                        errno);
  }
  return set(socket, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL");
}

}  // namespace

Error socket_error(std::string_view what, int error_number) {
  return {Code::system,
          fmt::format("udp: {}: {}", what, std::generic_category().message(error_number))};
}

Result<Descriptor> open_unicast(const LocalAddress& local, std::uint16_t port, int buffer_bytes) {
  UNISONO_ASSIGN(Descriptor socket, new_socket(local, buffer_bytes));
  UNISONO_TRY(bind_to(socket, {local.address, port}, local.index));
  return socket;
}

Status allow_multicast(const Descriptor& unicast, const LocalAddress& local,
                       const MulticastGroup& group) {
  const int index = static_cast<int>(local.index);
  if (local.address.family == Family::v6) {
    UNISONO_TRY(set(unicast, IPPROTO_IPV6, IPV6_MULTICAST_IF, index, "IPV6_MULTICAST_IF"));
    UNISONO_TRY(set(unicast, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, group.ttl, "IPV6_MULTICAST_HOPS"));
    return set(unicast, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, group.local ? 1 : 0,
               "IPV6_MULTICAST_LOOP");
  }
  ip_mreqn interface {};
  interface.imr_ifindex = index;
  std::memcpy(&interface.imr_address, local.address.bytes.data(), sizeof(interface.imr_address));
  if (setsockopt(unicast.get(), IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof(interface)) != 0) {
    return socket_error(fmt::format("setsockopt IP_MULTICAST_IF={}", local.interface), errno);
  }
  UNISONO_TRY(set(unicast, IPPROTO_IP, IP_MULTICAST_TTL, group.ttl, "IP_MULTICAST_TTL"));
  return set(unicast, IPPROTO_IP, IP_MULTICAST_LOOP, group.local ? 1 : 0, "IP_MULTICAST_LOOP");
}

Result<Descriptor> open_group(const LocalAddress& local, const MulticastGroup& group,
                              int buffer_bytes) {
  UNISONO_ASSIGN(Descriptor socket, new_socket(local, buffer_bytes));
  // The job's other ranks on this host bind to the same.
  UNISONO_TRY(set(socket, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"));
  UNISONO_TRY(bind_to(socket, group.endpoint, local.index));
  if (local.address.family == Family::v4) {
    UNISONO_TRY(join_v4(socket, local, group.endpoint.address));
  } else {
    UNISONO_TRY(join_v6(socket, local, group.endpoint.address));
  }
  return socket;
}

Result<Endpoint> bound_endpoint(const Descriptor& socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return socket_error("getsockname", errno);
  }
  return endpoint_of(own);
}

SocketFeatures probe_features(const Descriptor& unicast, bool offloads) {
  SocketFeatures features;
  features.receive_bytes = get(unicast, SO_RCVBUF);
  features.send_bytes = get(unicast, SO_SNDBUF);
  if (!offloads) return features;
  // 0 as the length of segments means that a send says its own.
  features.segmentation = set(unicast, SOL_UDP, UDP_SEGMENT, 0, "UDP_SEGMENT").ok();
  features.coalescing = let_coalesce(unicast);
  return features;
}

std::size_t waiting_bytes(const Descriptor& socket) {
  int bytes = 0;
  if (ioctl(socket.get(), SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

bool let_coalesce(const Descriptor& socket) {
  return set(socket, SOL_UDP, UDP_GRO, 1, "UDP_GRO").ok();
}

}  // namespace unisono::transport
