// SPDX-License-Identifier: BSD-3-Clause
#include "topology/fat_tree/placement.hpp"

#include <fmt/format.h>

namespace unisono::topology::fat_tree {

std::vector<int> Placement::holes() const {
  std::vector<bool> taken(static_cast<std::size_t>(tree.nodes()));
  for (const int leaf : leaves) taken[static_cast<std::size_t>(leaf)] = true;
  std::vector<int> result;
  for (int node = 0; node < tree.nodes(); ++node) {
    if (!taken[static_cast<std::size_t>(node)]) result.push_back(node);
  }
  return result;
}

base::Result<Placement> place_around(const Tree& tree, std::span<const int> holes, int ranks) {
  std::vector<bool> hole(static_cast<std::size_t>(tree.nodes()));
  for (const int node : holes) {
    if (node < 0 || node >= tree.nodes()) {
      return base::Error{base::Code::argument,
                         fmt::format("hole {}: the nodes of a {}-ary {}-tree are 0 to {}", node,
                                     tree.arity(), tree.levels(), tree.nodes() - 1)};
    }
    hole[static_cast<std::size_t>(node)] = true;
  }
  Placement result{tree, {}};
  for (int node = 0; node < tree.nodes() && (ranks <= 0 || result.ranks() < ranks); ++node) {
    if (!hole[static_cast<std::size_t>(node)]) result.leaves.push_back(node);
  }
  if (result.leaves.empty() || result.ranks() < ranks) {
    return base::Error{base::Code::argument, fmt::format("{} nodes without the holes are not "
                                                         "enough for {} ranks",
                                                         result.ranks(), std::max(ranks, 1))};
  }
  return result;
}

}  // namespace unisono::topology::fat_tree
