// SPDX-License-Identifier: BSD-3-Clause
// Placement: which leaf of a tree each rank's node is. Leaves without a rank are holes: nodes that
// are down, or that another job has. A value; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/fat_tree/tree.hpp"

namespace unisono::topology::fat_tree {

struct Placement {
  Tree tree;
  std::vector<int> leaves;              // leaves[r]: the node of rank r
  std::vector<std::string> names = {};  // of the ranks' nodes; empty where they have none

  int ranks() const { return static_cast<int>(leaves.size()); }
  std::vector<int> holes() const;  // ascending

  bool operator==(const Placement&) const = default;
};

// Ranks on all leaves but the holes, ascending; with `ranks` above 0, only so many.
base::Result<Placement> place_around(const Tree& tree, std::span<const int> holes, int ranks = 0);

}  // namespace unisono::topology::fat_tree
