// SPDX-License-Identifier: BSD-3-Clause
// Which algorithms the trees of the NIC path are lowered from, so that the host engine can run the
// same schedule to the same bits. Pure; any thread.
#pragma once

#include <string>

#include "algorithm/algorithm.hpp"
#include "schedule/shape.hpp"
#include "topology/host_map.hpp"

namespace unisono::select {

// Whether one packet carries a result to all other hosts. With two hosts it always does.
bool reaches_all(int hosts, bool multicasts);

// The allreduce among hosts that a group's trees are lowered from.
struct NicTrees {
  const algorithm::Algorithm* algorithm = nullptr;
  algorithm::Parameters parameters;
  schedule::Shape shape;    // one element for each piece
  bool has_pieces = false;  // one for each tree; otherwise it is a single tree
};
NicTrees nic_trees(int hosts, int splits, bool multicasts);

// Children that a parent takes a level: in the tree of hosts, and in that of a host's ranks.
int nic_fan_in(int hosts);
int nic_host_fan_in(int ranks);

// The tree among these ranks, or the trees of a vector that is halved so often: the algorithm with
// its parameters, for people.
std::string nic_tree_name(const topology::HostMap& ranks, int splits, bool multicasts);

// How often the usual parameters halve a vector among hosts.
int usual_splits(int hosts);

}  // namespace unisono::select
