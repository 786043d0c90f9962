// SPDX-License-Identifier: BSD-3-Clause
// A network of its own for the calling thread, for tests that would otherwise depend on the
// machine's network. It ends with the object (and with the process, however that ends). Needs the
// right to make one (root); otherwise the error says so, and a test skips with it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::harness {

class NetworkNamespace {
 public:
  // With the loopback interface up.
  static base::Result<std::unique_ptr<NetworkNamespace>> enter() {
    base::Descriptor before(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!before.valid() || unshare(CLONE_NEWNET) != 0) {
      return base::Error{base::Code::unsupported,
                         fmt::format("no network namespace can be made here ({}); as root it can",
                                     std::generic_category().message(errno))};
    }
    std::unique_ptr<NetworkNamespace> result(new NetworkNamespace(std::move(before)));
    UNISONO_TRY(result->ip("link set lo up"));
    return result;
  }
  ~NetworkNamespace() {
    // Nothing that the test could do without it would be right.
    if (setns(before_.get(), CLONE_NEWNET) != 0) std::abort();
  }
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  // Runs `ip ARGUMENTS` in it.
  base::Status ip(const std::string& arguments) {
    const std::string command = "ip " + arguments;
    if (std::system(command.c_str()) == 0) return base::success();
    return base::Error{base::Code::unsupported,
                       fmt::format("`{}` failed; the package iproute2 has the command", command)};
  }

  // An interface with both addresses, which carries multicast; no process is at its other end.
  base::Status add_interface(const std::string& name, const std::string& v4,
                             const std::string& v6) {
    UNISONO_TRY(ip(fmt::format("link add {0} type veth peer name {0}-peer", name)));
    UNISONO_TRY(ip(fmt::format("addr add {} dev {}", v4, name)));
    UNISONO_TRY(ip(fmt::format("addr add {} dev {} nodad", v6, name)));
    UNISONO_TRY(ip(fmt::format("link set {}-peer up", name)));
    UNISONO_TRY(ip(fmt::format("link set {} up", name)));
    // The kernel makes the routes of IPv6 when it has seen the carrier, a while later.
    while (!has_multicast_route(name)) sched_yield();
    return base::success();
  }

 private:
  static bool has_multicast_route(const std::string& name) {
    const base::Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 group{};
    group.sin6_family = AF_INET6;
    group.sin6_port = htons(9);
    group.sin6_scope_id = if_nametoindex(name.c_str());
    inet_pton(AF_INET6, "ff12::1", &group.sin6_addr);
    return connect(socket.get(), reinterpret_cast<const sockaddr*>(&group), sizeof(group)) == 0;
  }

  explicit NetworkNamespace(base::Descriptor before) : before_(std::move(before)) {}
  base::Descriptor before_;
};

}  // namespace unisono::harness
