// SPDX-License-Identifier: BSD-3-Clause
// Hosts: the hosts of a job as one of its ranks sees them: which ranks share memory with it, and
// how messages name a rank's host. A host is where one memory file can be mapped, not a name.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/job_info.hpp"
#include "topology/host_map.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::network {

class Hosts {
 public:
  explicit Hosts(const bootstrap::JobInfo& info)
      : map_(info.hosts.ranks() == 0 ? topology::HostMap::together(info.ranks) : info.hosts),
        rank_(info.rank) {
    for (const bootstrap::RankLocation& member : info.members) addresses_.push_back(member.address);
  }

  const topology::HostMap& map() const { return map_; }
  int count() const { return map_.hosts(); }
  int own() const { return map_.of(rank_); }
  int of(int rank) const { return map_.of(rank); }
  bool is_here(int rank) const { return map_.share(rank, rank_); }
  // The lowest rank of this host: it sets up the shared memory of the host's ranks.
  int first_here() const { return map_.first(own()); }
  std::span<const std::int32_t> firsts() const { return map_.firsts(); }
  // The ranks of this host, and those of other hosts; the lowest rank of each other host.
  // Ascending.
  std::span<const std::int32_t> here() const { return map_.members(own()); }
  auto elsewhere() const {
    return std::views::iota(0, map_.ranks()) |
           std::views::filter([this](int rank) { return !is_here(rank); });
  }
  auto firsts_elsewhere() const {
    return firsts() | std::views::filter([this](int first) { return !is_here(first); });
  }
  int count_here() const { return static_cast<int>(here().size()); }

  // For people: "host 10.0.0.3", the rank's host; empty if the job has one host. This host is named
  // as well, because a message may be read on all hosts.
  std::string place_of(int rank) const {
    const auto& address = addresses_[static_cast<std::size_t>(rank)];
    return address ? "host " + transport::ip_text(*address) : std::string();
  }
  // "rank 3 (host 10.0.0.3)"; "rank 3" if the job has one host.
  std::string name_of(int rank) const {
    const std::string place = place_of(rank);
    return "rank " + std::to_string(rank) + (place.empty() ? "" : " (" + place + ")");
  }
  // "host 10.0.0.3; " (if the host is to be named), and the note.
  std::string with_place(int rank, std::string_view note) const {
    std::string text = place_of(rank);
    if (!text.empty()) text += "; ";
    return text.append(note);
  }

 private:
  topology::HostMap map_;
  int rank_;
  std::vector<std::optional<transport::IpAddress>> addresses_;  // by rank
};

}  // namespace unisono::network
