// SPDX-License-Identifier: BSD-3-Clause
#include "network/narrow_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::network {
namespace {

std::string target_text(const std::vector<bootstrap::Member>& members, int rank) {
  if (rank == transport::kGroup) return "all by multicast";
  const auto& address = members[static_cast<std::size_t>(rank)].address;
  if (!address) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (host {})", rank, transport::ip_text(*address));
}

}  // namespace

std::function<void(int rank, std::size_t most_bytes)> narrow_path_log(
    const std::vector<bootstrap::Member>& members, std::size_t full_bytes) {
  return [members, full_bytes, warned = false](int rank, std::size_t most_bytes) mutable {
    const std::string target = target_text(members, rank);
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

std::vector<int> hosts_of(const std::vector<bootstrap::Member>& members) {
  std::vector<int> hosts(members.size());
  std::ranges::transform(members, hosts.begin(), &bootstrap::Member::host);
  return hosts;
}

std::vector<int> neighbours_of(int rank, const std::vector<int>& firsts) {
  const auto self = std::ranges::find(firsts, rank);
  if (self == firsts.end()) return {};
  const auto own = static_cast<std::size_t>(self - firsts.begin());
  std::vector<int> neighbours;
  for (std::size_t distance = 1; distance < firsts.size(); distance *= 2) {
    neighbours.push_back(firsts[(own + distance) % firsts.size()]);
    neighbours.push_back(firsts[(own + firsts.size() - distance) % firsts.size()]);
  }
  std::ranges::sort(neighbours);
  const auto twice = std::ranges::unique(neighbours);
  neighbours.erase(twice.begin(), twice.end());
  return neighbours;
}

}  // namespace unisono::network
