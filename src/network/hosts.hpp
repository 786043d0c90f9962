// SPDX-License-Identifier: BSD-3-Clause
// Hosts: which ranks of a job share memory with this one, and which are on other hosts. A host is
// where one memory file can be mapped, not a name. Immutable; any thread.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/job_info.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::network {

class Hosts {
 public:
  Hosts(std::span<const bootstrap::Member> members, int rank) {
    for (const bootstrap::Member& member : members) {
      by_rank_.push_back(member.host);
      addresses_.push_back(member.address);
    }
    firsts_ = bootstrap::first_ranks(members);
    own_ = by_rank_[static_cast<std::size_t>(rank)];
    count_ = std::ranges::max(by_rank_) + 1;
    first_here_ = firsts_[static_cast<std::size_t>(own_)];
  }

  int count() const { return count_; }
  int own() const { return own_; }
  int of(int rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  bool is_here(int rank) const { return of(rank) == own_; }
  // The lowest rank of this host: it sets up the shared memory of the host's ranks.
  int first_here() const { return first_here_; }
  // The first ranks of all hosts.
  const std::vector<int>& firsts() const { return firsts_; }
  int count_here() const { return static_cast<int>(std::ranges::count(by_rank_, own_)); }

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
  std::vector<int> by_rank_;
  std::vector<std::optional<transport::IpAddress>> addresses_;  // by rank
  std::vector<int> firsts_;                                     // by host
  int own_ = 0;
  int count_ = 1;
  int first_here_ = 0;
};

}  // namespace unisono::network
