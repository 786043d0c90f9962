// SPDX-License-Identifier: BSD-3-Clause
// The host's addresses and the choice among them (interfaces.hpp). Control path.
#include "transport/ip/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <system_error>

#include "base/descriptor.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;

// Any: a UDP socket needs a port to be connected, and none is ever sent to.
constexpr std::uint16_t kDiscardPort = 9;

Error system_error(std::string_view what, int error_number) {
  return {Code::system, fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

int mtu_of(const Descriptor& socket, const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  // 1280 is the least that IPv6 may rely on; so little is carried everywhere.
  return ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 1280;
}

// How many peers the kernel reaches from an address.
struct Source {
  IpAddress address;
  std::size_t peers = 0;
  IpAddress first_peer;
};

Result<std::vector<Source>> sources_of(std::span<const IpAddress> peers,
                                       const RouteQuestion& route) {
  std::vector<Source> sources;
  Error last{Code::argument, "no peer is known, so there is no route to choose an address by"};
  for (const IpAddress& peer : peers) {
    const Result<IpAddress> answer = route(peer);
    if (!answer.ok()) {
      last = answer.error();
      continue;
    }
    const auto same = std::find_if(sources.begin(), sources.end(),
                                   [&](const Source& one) { return one.address == *answer; });
    if (same == sources.end()) {
      sources.push_back({*answer, 1, peer});
    } else {
      ++same->peers;
    }
  }
  if (sources.empty()) return last;
  // Stable: among equals the first one stays first.
  std::stable_sort(sources.begin(), sources.end(),
                   [](const Source& a, const Source& b) { return a.peers > b.peers; });
  return sources;
}

std::string listing(std::span<const LocalAddress> locals) {
  std::string result;
  for (const LocalAddress& local : locals) {
    result +=
        fmt::format("{}{} {}", result.empty() ? "" : ", ", local.interface, ip_text(local.address));
  }
  return result.empty() ? "none" : result;
}

}  // namespace

Result<std::vector<LocalAddress>> local_addresses() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return system_error("socket", errno);
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return system_error("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, freeifaddrs);
  std::vector<LocalAddress> result;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, entry->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    result.push_back({.interface = entry->ifa_name,
                      .index = if_nametoindex(entry->ifa_name),
                      .address = endpoint_of(storage).address,
                      .mtu = mtu_of(socket, entry->ifa_name),
                      .multicast = (entry->ifa_flags & IFF_MULTICAST) != 0});
  }
  return result;
}

Result<IpAddress> source_towards(const IpAddress& peer) {
  const int family = peer.family == Family::v4 ? AF_INET : AF_INET6;
  const Descriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return system_error("socket", errno);
  const SocketAddress target = socket_address({peer, kDiscardPort}, 0);
  if (connect(socket.get(), target.get(), target.length) != 0) {
    return system_error(fmt::format("no route to {}", ip_text(peer)), errno);
  }
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return system_error("getsockname", errno);
  }
  return endpoint_of(own).address;
}

Result<ChosenAddress> choose_address(std::span<const IpAddress> peers, const NetworkList& allowed,
                                     std::span<const LocalAddress> locals,
                                     const RouteQuestion& route) {
  UNISONO_ASSIGN(const std::vector<Source> sources, sources_of(peers, route));
  for (const Source& source : sources) {
    for (const LocalAddress& local : locals) {
      if (local.address != source.address || !allowed.allows(local.interface, local.address)) {
        continue;
      }
      std::string why = fmt::format("route to {}", ip_text(source.first_peer));
      if (source.peers < peers.size()) {
        why += fmt::format(" and {} of {} peers in all", source.peers, peers.size());
      }
      return ChosenAddress{local, why};
    }
  }
  const LocalAddress* best = nullptr;
  std::size_t best_preference = std::numeric_limits<std::size_t>::max();
  for (const LocalAddress& local : locals) {
    // Without a named item the list only forbids, and to pick one of the rest would be a guess.
    const auto preference = allowed.preference(local.interface, local.address);
    if (!preference || !allowed.allows(local.interface, local.address)) continue;
    if (local.address.family != peers.front().family || *preference >= best_preference) continue;
    best = &local;
    best_preference = *preference;
  }
  if (best != nullptr) return ChosenAddress{*best, "named in UNISONO_NETWORKS"};
  return Error{Code::argument,
               fmt::format("the peers are reached from {}, which UNISONO_NETWORKS={} does not "
                           "allow, and it names no other address of this host for them; there are: "
                           "{}",
                           ip_text(sources.front().address), allowed.text(), listing(locals))};
}

}  // namespace unisono::transport
