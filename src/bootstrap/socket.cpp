// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "bootstrap/identity.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using transport::SocketAddress;

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

// `flags`: for getaddrinfo(). Without AI_NUMERICHOST it may ask a name service, which has no limit.
Result<SocketAddress> look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    return Error{Code::argument, fmt::format("UNISONO_RENDEZVOUS: host \"{}\" is not known: {}",
                                             host, gai_strerror(status))};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.length = found->ai_addrlen;
  return result;
}

// The port has the same offset in both families.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Result<SocketAddress> socket_address_of(const Address& address) {
  SocketAddress result;
  if (address.kind != Address::Kind::tcp) {
    sockaddr_un unix_address{};
    unix_address.sun_family = AF_UNIX;
    // The leading zero byte makes the name abstract.
    std::memcpy(unix_address.sun_path + 1, address.name.data(), address.name.size());
    std::memcpy(&result.storage, &unix_address, sizeof(unix_address));
    result.length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.name.size());
    return result;
  }
  if (address.resolved) {
    result = *address.resolved;
  } else {
    UNISONO_ASSIGN(result, look_up(address.name, AI_NUMERICHOST));
  }
  reinterpret_cast<sockaddr_in&>(result.storage).sin_port = htons(address.port);
  return result;
}

// Waits for a pending connection; returns its errno, or ETIMEDOUT.
int finish_connect(const Descriptor& socket, std::int64_t deadline_ns) {
  pollfd waiting{socket.get(), POLLOUT, 0};
  int ready = 0;
  do {
    ready = poll(&waiting, 1, base::poll_timeout_ms(deadline_ns));
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  int error_number = 0;
  socklen_t length = sizeof(error_number);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error_number, &length) != 0) return errno;
  return error_number;
}

// How /proc/net/unix marks a socket that listens (the kernel's __SO_ACCEPTCON).
constexpr std::string_view kListeningFlags = "00010000";
constexpr std::size_t kSuffixDigits = 16;

// One line of /proc/net/unix: number, references, protocol, flags, type, state, inode, name.
std::string_view name_of_listener(std::string_view line) {
  constexpr int kFlagsField = 3;
  constexpr int kNameField = 7;
  for (int field = 0; field < kNameField; ++field) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t end = std::min(line.find(' '), line.size());
    if (field == kFlagsField && line.substr(0, end) != kListeningFlags) return {};
    line.remove_prefix(end);
  }
  line.remove_prefix(std::min<std::size_t>(1, line.size()));
  return line.starts_with('@') ? line.substr(1) : std::string_view();
}

// Abstract sockets that listen in this thread's network namespace and have a name of listen_at().
Result<std::vector<Address>> find_listeners(const std::string& prefix) {
  constexpr const char* kList = "/proc/thread-self/net/unix";
  std::ifstream file(kList);
  if (!file) return base::system_error(kList, errno);
  std::vector<Address> found;
  const std::string start = prefix + "-";
  for (std::string line; std::getline(file, line);) {
    const std::string_view name = name_of_listener(line);
    if (name.size() != start.size() + kSuffixDigits || !name.starts_with(start)) continue;
    found.push_back({Address::Kind::unix_name, std::string(name), 0});
  }
  return found;
}

// A path may carry shorter packets than its interfaces tell TCP, which then repeats a long segment
// for ever. Segments of this length fit: every IPv6 path carries 1280 bytes, 60 of them headers.
void limit_segments(const Descriptor& socket) {
  const int bytes = 1280 - 60;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_MAXSEG, &bytes, sizeof(bytes));
}

Result<ConnectAttempt> connect_to_one(const Address& address, std::int64_t deadline_ns) {
  UNISONO_ASSIGN(const SocketAddress target, socket_address_of(address));
  ConnectAttempt result;
  Descriptor socket(::socket(target.storage.ss_family, kSocketFlags, 0));
  if (!socket.valid()) return base::system_error("socket", errno);
  if (address.kind == Address::Kind::tcp) limit_segments(socket);
  int error_number = 0;
  if (connect(socket.get(), target.get(), target.length) != 0) error_number = errno;
  if (error_number == EINPROGRESS || error_number == EINTR) {
    error_number = finish_connect(socket, deadline_ns);
  }
  switch (error_number) {
    case 0:
      result.socket = std::move(socket);
      return result;
    case ECONNREFUSED:
    case ENOENT:
      return result;
    // The queue of a Unix socket is full (EAGAIN), or that of a TCP socket stayed full.
    case EAGAIN:
    case ECONNRESET:
    case ETIMEDOUT:
      result.busy = true;
      return result;
    // The kernel makes an interface's IPv6 routes a while after it is up.
    case EHOSTUNREACH:
    case ENETUNREACH:
      result.unreachable = error_number;
      return result;
    default:
      return base::system_error(
          fmt::format("cannot connect to the rendezvous at {}", address_text(address)),
          error_number);
  }
}

// Connects to the first one that belongs to this user.
Result<ConnectAttempt> connect_by_prefix(const std::string& prefix, std::int64_t deadline_ns) {
  UNISONO_ASSIGN(const std::vector<Address> listeners, find_listeners(prefix));
  ConnectAttempt result;
  for (const Address& each : listeners) {
    UNISONO_ASSIGN(ConnectAttempt one, connect_to_one(each, deadline_ns));
    if (one.socket.valid() && is_of_own_user(one.socket)) return one;
    result.busy |= one.busy;
    if (one.socket.valid()) ++result.others;
    if (base::now_ns() >= deadline_ns) break;  // there may be very many of them
  }
  return result;
}

}  // namespace

base::Status resolve(Address& address, std::int64_t timeout_ns) {
  if (address.kind != Address::Kind::tcp || address.resolved) return base::success();
  Result<SocketAddress> found = look_up(address.name, AI_NUMERICHOST);
  if (!found.ok()) {
    const auto ask = [host = address.name] { return look_up(host, 0); };
    UNISONO_ASSIGN(std::optional<Result<SocketAddress>> answer,
                   base::call_aside<Result<SocketAddress>>("unisono-resolve", ask, timeout_ns));
    if (!answer) {
      return Error{Code::timeout,
                   fmt::format("UNISONO_RENDEZVOUS: the name service gave no address of host "
                               "\"{}\" within {} (UNISONO_START_TIMEOUT); give a numeric address, "
                               "or see /etc/resolv.conf",
                               address.name, base::format_time_ns(timeout_ns))};
    }
    found = std::move(*answer);
  }
  UNISONO_ASSIGN(address.resolved, found);
  return base::success();
}

Result<Descriptor> listen_at(Address& address) {
  if (address.kind == Address::Kind::unix_prefix) {
    UNISONO_ASSIGN(const ConnectAttempt other,
                   connect_by_prefix(address.name, base::now_ns() + base::kSecond));
    if (other.socket.valid()) {
      return Error{Code::system,
                   fmt::format("cannot serve the rendezvous at {}; another job or process of this "
                               "user listens there",
                               address_text(address))};
    }
    UNISONO_ASSIGN(const std::uint64_t number, random_number());
    address = {Address::Kind::unix_name, fmt::format("{}-{:016x}", address.name, number), 0};
  }
  UNISONO_ASSIGN(const SocketAddress target, socket_address_of(address));
  Descriptor socket(::socket(target.storage.ss_family, kSocketFlags, 0));
  if (!socket.valid()) return base::system_error("socket", errno);
  const int on = 1;
  if (address.kind == Address::Kind::tcp) {
    limit_segments(socket);
    // A job that follows another on the same port need not wait for its old connections to expire.
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (bind(socket.get(), target.get(), target.length) != 0) {
    std::string_view hint;
    if (errno == EADDRINUSE) hint = "; another job or process listens there";
    if (errno == EADDRNOTAVAIL) hint = "; it has to be an address of the host of rank 0";
    Error error = base::system_error(
        fmt::format("cannot serve the rendezvous at {}", address_text(address)), errno);
    error.message += hint;
    return error;
  }
  if (listen(socket.get(), SOMAXCONN) != 0) return base::system_error("listen", errno);
  if (address.kind == Address::Kind::tcp) {
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
      return base::system_error("getsockname", errno);
    }
    address.port = port_of(bound);
  }
  return socket;
}

Result<ConnectAttempt> attempt_connect(const Address& address, std::int64_t deadline_ns) {
  return address.kind == Address::Kind::unix_prefix ? connect_by_prefix(address.name, deadline_ns)
                                                    : connect_to_one(address, deadline_ns);
}

Result<std::optional<Descriptor>> try_connect(const Address& address, std::int64_t deadline_ns) {
  UNISONO_ASSIGN(ConnectAttempt attempt, attempt_connect(address, deadline_ns));
  if (!attempt.socket.valid()) return std::optional<Descriptor>();
  return std::optional(std::move(attempt.socket));
}

bool is_of_own_user(const Descriptor& socket) {
  const Result<Peer> peer = peer_of(socket);
  return peer.ok() && peer->uid == geteuid();
}

Result<Peer> peer_of(const Descriptor& socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return base::system_error("SO_PEERCRED", errno);
  }
  return Peer{credentials.pid, credentials.uid};
}

std::string peer_ip_text(const Descriptor& socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) return "?";
  return transport::ip_text(transport::endpoint_of(peer).address);
}

Result<transport::IpAddress> ip_of(const Address& address) {
  UNISONO_ASSIGN(const SocketAddress resolved, socket_address_of(address));
  return transport::endpoint_of(resolved.storage).address;
}

}  // namespace unisono::bootstrap
