// SPDX-License-Identifier: BSD-3-Clause
// HostMap: the host of each rank, and nothing else says it. Ranks of one host share memory; data
// for another host goes in packets. Hosts are numbered by their lowest ranks. So all ranks that
// know the same hosts number them alike, and equal maps have equal numbers. Copies share the
// numbers. A value; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace unisono::topology {

class HostMap {
 public:
  // The empty map: all ranks are on one host, however many there are.
  HostMap() = default;

  // labels[r] is equal for ranks of one host and differs between hosts.
  static HostMap of_labels(std::span<const int> labels);
  // All of so many ranks on one host; each of them on a host of its own.
  static HostMap together(int ranks);
  static HostMap apart(int ranks);

  // Whether there are several hosts.
  bool given() const { return hosts() > 1; }
  int ranks() const;  // 0 in the empty map
  int hosts() const;
  int of(int rank) const { return host_ == nullptr ? 0 : host_[rank]; }  // its host
  int place(int rank) const;  // the number of lower ranks on its host
  bool share(int a, int b) const { return of(a) == of(b); }
  // The lowest rank of each host, ascending.
  std::span<const std::int32_t> firsts() const;
  int first(int host) const;
  // The ranks of a host, ascending. Not in the empty map.
  std::span<const std::int32_t> members(int host) const;
  // Whether the ranks of each host are consecutive.
  bool are_neighbours() const;
  // Whether each host has exactly one rank.
  bool are_alone() const { return given() && hosts() == ranks(); }

  // Compares the numbers, also of maps that do not share them. Maps of one host are equal.
  friend bool operator==(const HostMap& a, const HostMap& b);

 private:
  struct Numbers;
  explicit HostMap(Numbers numbers);

  std::shared_ptr<const Numbers> numbers_;
  const std::int32_t* host_ = nullptr;  // in numbers_: by rank
};

}  // namespace unisono::topology
