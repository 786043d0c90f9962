// SPDX-License-Identifier: BSD-3-Clause
#include "select/nic/tree_choice.hpp"

#include <algorithm>

namespace unisono::select {
namespace {

schedule::Shape tree_shape(int ranks) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::allreduce;
  shape.ranks = ranks;
  shape.count = 1;
  return shape;
}

const algorithm::Algorithm& allreduce(const char* name) {
  return *algorithm::find(schedule::Collective::allreduce, name);
}

const algorithm::Algorithm& single_tree(bool reaches_all) {
  return allreduce(reaches_all ? "gather-release" : "reduce-broadcast");
}

// Its first tree is single_tree(true), and its only one if nothing is split.
const algorithm::Algorithm& split_trees() { return allreduce("split-release"); }

const algorithm::Algorithm& two_level() { return allreduce("two-level"); }

}  // namespace

bool reaches_all(int hosts, bool multicasts) { return multicasts || hosts == 2; }

int nic_fan_in(int hosts) {
  return algorithm::default_parameters(single_tree(true), tree_shape(hosts)).values[0];
}

int nic_host_fan_in(int ranks) {
  return algorithm::default_parameters(two_level(), tree_shape(ranks)).values[1];
}

int usual_splits(int hosts) {
  return algorithm::default_parameters(split_trees(), tree_shape(hosts)).values[0];
}

NicTrees nic_trees(int hosts, int splits, bool multicasts) {
  NicTrees trees;
  trees.shape = tree_shape(hosts);
  if (!reaches_all(hosts, multicasts)) {
    trees.algorithm = &single_tree(false);
    trees.parameters = algorithm::default_parameters(*trees.algorithm, trees.shape);
    return trees;
  }
  trees.algorithm = &split_trees();
  trees.parameters = {{splits, nic_fan_in(hosts)}};
  trees.shape.count = 1 << splits;
  trees.has_pieces = true;
  return trees;
}

std::string nic_tree_name(const topology::HostMap& ranks, int splits, bool multicasts) {
  schedule::Shape shape = tree_shape(ranks.ranks());
  const algorithm::Algorithm& row =
      splits > 0 ? split_trees() : single_tree(reaches_all(ranks.hosts(), multicasts));
  if (ranks.are_alone()) {
    algorithm::Parameters parameters = algorithm::default_parameters(row, shape);
    if (splits > 0) parameters.values[0] = splits;
    return algorithm::describe(row, parameters);
  }
  shape.hosts = ranks;
  algorithm::Parameters parameters = algorithm::default_parameters(two_level(), shape);
  const auto& inner = two_level().parameters[0].names;
  parameters.values[0] = static_cast<int>(std::ranges::find(inner, row.name) - inner.begin());
  return algorithm::describe(two_level(), parameters);
}

}  // namespace unisono::select
