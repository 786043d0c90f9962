// SPDX-License-Identifier: BSD-3-Clause
// HostMap: the host of each rank, if the job has several. Ranks of one host share memory; data for
// another host goes in packets. Hosts are numbered by their lowest ranks. So all ranks that know
// the same hosts number them alike, and equal maps have equal numbers. Copies share the numbers. A
// value; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace unisono::topology {

class HostMap {
 public:
  // The empty map: all ranks are on one host.
  HostMap() = default;

  // labels[r] is equal for ranks of one host and differs between hosts. If all labels are equal,
  // the map is empty.
  static HostMap of_labels(std::span<const int> labels);

  bool given() const { return numbers_ != nullptr; }
  // The following functions need a map that is not empty.
  int ranks() const;
  int hosts() const;
  int of(int rank) const;                                 // its host
  int place(int rank) const;                              // the number of lower ranks on its host
  std::span<const std::int32_t> members(int host) const;  // ranks, ascending
  // Whether the ranks of each host are consecutive.
  bool are_neighbours() const;
  // Whether each host has exactly one rank.
  bool are_alone() const { return hosts() == ranks(); }

  // Compares the numbers, also of maps that do not share them.
  friend bool operator==(const HostMap& a, const HostMap& b);

 private:
  struct Numbers;
  std::shared_ptr<const Numbers> numbers_;
};

}  // namespace unisono::topology
