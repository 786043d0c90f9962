// SPDX-License-Identifier: BSD-3-Clause
// What the two-level scan and exscan have in common: a scan within each host, by its own rows of
// the table, and an exclusive scan of the hosts' sums among the highest ranks, which lead because
// they have those sums. Hosts have to stand in the order of ranks. Only these two use it; any
// thread.
#pragma once

#include <string_view>

#include "algorithm/two_level.hpp"

namespace unisono::algorithm::two_level {

// The scans within a host and among leaders, by their names.
inline constexpr std::string_view kScans[] = {"linear", "recursive-doubling"};

class ScanOfHosts {
 public:
  ScanOfHosts(const Shape& shape, const Parameters& parameters, int rank);

  int hosts() const { return levels_.hosts(); }
  bool leads() const { return leads_; }
  // Whether there are ranks below or above those of this host, and whether others on it are below
  // this one.
  bool has_hosts_below() const { return host_ > 0; }
  bool has_hosts_above() const { return host_ + 1 < hosts(); }
  bool has_ranks_below() const { return levels_.place(rank_) > 0; }

  // Slots, in this order: the sum of the hosts below, at ranks of other hosts than the first that
  // do not lead; those of the scan within the host; at leaders, those of the exscan among them.
  void make_slot_of_hosts_below(Builder& b) const;
  std::vector<OpId> within_host(Builder& b, Range input, Range output) const;
  std::vector<OpId> among_leaders(Builder& b, const Seat& seat) const;
  // The sum of the hosts below, from the leader to all others of its host.
  void release(Builder& b, Range value, std::span<const OpId> after) const;

 private:
  Schedule local(int host, int place) const;

  const Shape& shape_;
  const Parameters& parameters_;
  int rank_;
  Levels levels_;
  int host_;
  bool leads_;
};

// Why a scan cannot be done in two levels; nullptr if it can.
const char* hosts_out_of_order(const Shape& shape, const Parameters& parameters);
inline constexpr std::string_view kHostsInOrder = "hosts whose ranks follow one another";

}  // namespace unisono::algorithm::two_level
