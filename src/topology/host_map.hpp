// SPDX-License-Identifier: BSD-3-Clause
// HostMap: which host each rank is on, where there are several. Ranks of one host share memory;
// what goes to another is a packet. Hosts are numbered by their lowest ranks, so that everyone who
// knows who is with whom numbers them alike, and equal maps are equal numbers. Copies share them. A
// value; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace unisono::topology {

class HostMap {
 public:
  // None given: all ranks are on one host.
  HostMap() = default;

  // labels[r]: anything that ranks of one host have in common, and no others. Not given if all
  // ranks have it in common.
  static HostMap of_labels(std::span<const int> labels);

  bool given() const { return numbers_ != nullptr; }
  // The following are for maps that are given.
  int ranks() const;
  int hosts() const;
  int of(int rank) const;                                 // its host
  int place(int rank) const;                              // how many lower ranks are on its host
  std::span<const std::int32_t> members(int host) const;  // ranks, ascending
  // Whether every host's ranks follow one another.
  bool are_neighbours() const;
  // Whether every host has one rank.
  bool are_alone() const { return hosts() == ranks(); }

  // Equal numbers, whether or not they are the same in memory.
  friend bool operator==(const HostMap& a, const HostMap& b);

 private:
  struct Numbers;
  std::shared_ptr<const Numbers> numbers_;
};

}  // namespace unisono::topology
