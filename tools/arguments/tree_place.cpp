// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/tree_place.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "arguments/number_list.hpp"
#include "sim/topology_file.hpp"

namespace unisono::tools {

using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

base::Result<Placement> find_placement(const TreePlace& place, const model::Machine& machine,
                                       int ranks, const std::string& asked_by) {
  if (!place.topology.empty()) {
    UNISONO_ASSIGN(Placement placement, sim::read_topology_file(place.topology));
    if (placement.ranks() < ranks) {
      return base::argument_error(fmt::format("{} has nodes for {} ranks, not for {}",
                                              place.topology, placement.ranks(), ranks));
    }
    return placement;
  }
  std::optional<Tree> tree;
  if (!place.tree.empty()) {
    UNISONO_ASSIGN(tree, Tree::parse(place.tree));
  } else if (machine.tree) {
    UNISONO_ASSIGN(tree, Tree::make(machine.tree->arity, machine.tree->levels));
  } else {
    return base::argument_error(asked_by +
                                " needs --tree or --topology: the machine file has no tree");
  }
  std::vector<int> holes;
  if (!place.holes.empty()) {
    const auto list = parse_number_list(place.holes, Step::one, 0, tree->nodes() - 1);
    if (!list) return base::argument_error("--holes: " + list.error().message);
    holes.assign(list->begin(), list->end());
  }
  return place_around(*tree, holes, ranks);
}

}  // namespace unisono::tools
