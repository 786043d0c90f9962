// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/stream_socket.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/clock.hpp"
#include "transport/ip/interfaces.hpp"

namespace unisono::transport {
namespace {

using base::Descriptor;
using base::Result;

// Newer than the C library's headers; the number is the kernel's (Linux 6.15).
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

constexpr int kIdleBeforeProbeSeconds = 30;  // firewalls forget connections after minutes
constexpr int kBetweenProbesSeconds = 5;
constexpr int kLongestRepeatMs = 1000;  // so that a stream goes on soon after an outage
// Packets of 1280 bytes, which every path of IPv6 carries. On a path that drops longer ones without
// a word, a stream of the kernel would not go on. Short segments cost little: the kernel and the
// interface cut them.
constexpr int kSegmentBytes = 1280 - 60;

constexpr socklen_t kMostNameBytes = 16;  // of a congestion control (TCP_CA_NAME_MAX)

// Where a link-local address of IPv6 is meant; 0 for others.
unsigned interface_of(const IpAddress& address) {
  if (!address.is_link_local()) return 0;
  const auto locals = local_addresses();
  if (!locals.ok()) return 0;
  const auto own = std::ranges::find(*locals, address, &LocalAddress::address);
  return own == locals->end() ? 0 : own->index;
}

// Kernels without an option go on without it.
void set(const Descriptor& socket, int level, int option, int value) {
  static_cast<void>(setsockopt(socket.get(), level, option, &value, sizeof value));
}

Result<Descriptor> bound_socket(const IpAddress& address, bool connects) {
  const bool v4 = address.family == Family::v4;
  Descriptor socket(
      ::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return stream_error("socket", errno);
  if (!v4) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set(socket, IPPROTO_TCP, TCP_MAXSEG, kSegmentBytes);
  // The port is chosen with the peer's address in view, so that they do not run out.
  if (connects) set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const SocketAddress own = socket_address({address, 0}, interface_of(address));
  if (bind(socket.get(), own.get(), own.length) != 0) {
    return stream_error(fmt::format("cannot bind to {}", ip_text(address)), errno);
  }
  return socket;
}

}  // namespace

base::Error stream_error(std::string_view what, int error_number) {
  return {base::Code::system, fmt::format("tcp: {}: {}", what, error_text(error_number))};
}

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

Result<Descriptor> listen_at(const IpAddress& address) {
  UNISONO_ASSIGN(Descriptor socket, bound_socket(address, false));
  if (listen(socket.get(), kStreamBacklog) != 0) return stream_error("listen", errno);
  return socket;
}

Result<Endpoint> endpoint_of_socket(const Descriptor& socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return stream_error("getsockname", errno);
  }
  return endpoint_of(own);
}

Result<Descriptor> start_to_connect(const IpAddress& from, const Endpoint& to,
                                    std::string_view congestion) {
  UNISONO_ASSIGN(Descriptor socket, bound_socket(from, true));
  set_congestion_control(socket, congestion);
  const SocketAddress there = socket_address(to, interface_of(from));
  if (connect(socket.get(), there.get(), there.length) != 0 && errno != EINPROGRESS) {
    return stream_error(fmt::format("cannot connect to {}", endpoint_text(to)), errno);
  }
  return socket;
}

void set_stream_options(const Descriptor& socket, std::int64_t silence_ns) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleBeforeProbeSeconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kBetweenProbesSeconds);
  const std::int64_t silence_ms =
      std::clamp<std::int64_t>(silence_ns / base::kMillisecond, 1, std::numeric_limits<int>::max());
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence_ms));
  set(socket, IPPROTO_TCP, TCP_RTO_MAX_MS, kLongestRepeatMs);
}

std::string choose_congestion_control(const Descriptor& socket) {
  return choose_congestion_control(socket, congestion_control_of(socket));
}

std::string choose_congestion_control(const Descriptor& socket, std::string_view system) {
  if (!system.starts_with("bbr")) return {};
  for (const std::string_view name : {"cubic", "reno"}) {
    set_congestion_control(socket, name);
    if (congestion_control_of(socket) == name) return std::string(name);
  }
  return {};
}

void set_congestion_control(const Descriptor& socket, std::string_view name) {
  if (name.empty()) return;
  static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                               static_cast<socklen_t>(name.size())));
}

std::string congestion_control_of(const Descriptor& socket) {
  std::array<char, kMostNameBytes + 1> name{};
  socklen_t length = kMostNameBytes;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return {};
  return name.data();
}

void leave_poller(int poller, const Descriptor& socket) {
  if (!socket.valid()) return;
  epoll_ctl(poller, EPOLL_CTL_DEL, socket.get(), nullptr);
  shutdown(socket.get(), SHUT_RDWR);
}

int pending_error(const Descriptor& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

std::size_t unacknowledged_bytes(const Descriptor& socket) {
  int bytes = 0;
  if (ioctl(socket.get(), SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

}  // namespace unisono::transport
