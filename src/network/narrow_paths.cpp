// SPDX-License-Identifier: BSD-3-Clause
#include "network/narrow_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "transport/datagrams.hpp"

namespace unisono::network {
namespace {

std::string target_text(const Hosts& hosts, int rank) {
  return rank == transport::kGroup ? "all by multicast" : hosts.name_of(rank);
}

}  // namespace

std::function<void(int rank, std::size_t most_bytes)> narrow_path_log(Hosts hosts,
                                                                      std::size_t full_bytes) {
  return [hosts = std::move(hosts), full_bytes, warned = false](int rank,
                                                                std::size_t most_bytes) mutable {
    const std::string target = target_text(hosts, rank);
    if (most_bytes == 0) {
      base::log(base::LogLevel::warn, "network",
                "{} is taken to be lost: it answers, but what it asks for again and again vanishes "
                "on the way, however short",
                target);
      return;
    }
    const bool is_first = !std::exchange(warned, true);
    base::log(is_first ? base::LogLevel::warn : base::LogLevel::info, "network",
              "datagrams of {} bytes to {} vanish where shorter ones pass: the path carries less "
              "than the interface says. From now on they have {} bytes at most. Look for an MTU on "
              "the way that is too small, or set UNISONO_DATAGRAM={} on all hosts{}",
              full_bytes, target, most_bytes, most_bytes,
              is_first ? "; of other ranks UNISONO_LOG=info tells" : "");
  };
}

std::vector<int> neighbours_of(int rank, const topology::HostMap& hosts) {
  if (hosts.place(rank) != 0) return {};
  const int count = hosts.hosts();
  std::vector<int> neighbours;
  for (int distance = 1; distance < count; distance *= 2) {
    neighbours.push_back(hosts.first((hosts.of(rank) + distance) % count));
    neighbours.push_back(hosts.first((hosts.of(rank) + count - distance) % count));
  }
  std::ranges::sort(neighbours);
  const auto twice = std::ranges::unique(neighbours);
  neighbours.erase(twice.begin(), twice.end());
  return neighbours;
}

}  // namespace unisono::network
