// SPDX-License-Identifier: BSD-3-Clause
// The common part of the two-level scan and exscan. Each host scans with rows of the table. The
// highest ranks, which have the hosts' sums, lead and do an exclusive scan of these sums. Hosts
// must be in the order of ranks. Only these two use it; any thread.
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

  // Slots, in this order. First the sum of the hosts below, at ranks that do not lead, except on
  // the first host. Then those of the scan within the host. Last, at leaders, those of the exscan
  // among them.
  void make_slot_of_hosts_below(Builder& b) const;
  std::vector<OpId> within_host(Builder& b, Range input, Range output) const;
  std::vector<OpId> among_leaders(Builder& b, const InnerBuffers& buffers) const;
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
