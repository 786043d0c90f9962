// SPDX-License-Identifier: BSD-3-Clause
// LinkLoads: the number of messages on each directed link of a tree, for messages that are under
// way at the same time. Deterministic by seed. One thread at a time.
//
// find_congestion says whether messages can meet at all. Every switch has as many ports up as down,
// so an adaptive switch gives each message a port of its own going up, and messages meet only going
// down. They can meet in a link into a subtree if and only if they come from two different subtrees
// of its height: those of one subtree have been parted on the way up, those of two are free to
// choose alike. Source: Heller, "Congestion-free routing on the CM-5 data router", 1994; the
// criterion is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/prng.hpp"
#include "topology/fat_tree/tree.hpp"

namespace unisono::topology::fat_tree {

// How a switch chooses the port up.
enum class Ascent : std::uint8_t {
  by_source,     // by the digits of the source: each source has an upward path of its own
  by_target,     // by the digits of the target: each target has a downward path of its own
  least_loaded,  // the port with the least load; a seeded choice among equals
};
std::string_view ascent_name(Ascent ascent);
std::optional<Ascent> ascent_from_name(std::string_view name);

// A message between two nodes.
struct Flow {
  int source = 0, target = 0;

  bool operator==(const Flow&) const = default;
};

class LinkLoads {
 public:
  explicit LinkLoads(const Tree& tree);

  void add(Flow flow, double weight, Ascent ascent, base::Prng& random);
  void clear();

  double of(int link) const { return loads_[static_cast<std::size_t>(link)]; }
  std::span<const double> all() const { return loads_; }
  double greatest(bool up, int level) const;
  double greatest() const;

 private:
  Tree tree_;
  std::vector<double> loads_;
};

// Two messages that may meet, in a link into the `subtree` of that height.
struct Congestion {
  int height = 0, subtree = 0;
  Flow first, second;
};
// Where simultaneous messages, at most one from each node, can meet. nullopt: they cannot meet
// whatever ports the switches choose, as long as no two share a link going up.
std::optional<Congestion> find_congestion(const Tree& tree, std::span<const Flow> flows);

}  // namespace unisono::topology::fat_tree
