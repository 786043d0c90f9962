// SPDX-License-Identifier: BSD-3-Clause
#include "sim/step_loads.hpp"

#include <algorithm>

namespace unisono::sim {

using topology::fat_tree::Flow;

ScheduleLoads schedule_loads(std::span<const schedule::Message> messages,
                             const topology::fat_tree::Placement& placement,
                             topology::fat_tree::Ascent ascent, std::uint64_t seed) {
  const auto& tree = placement.tree;
  const auto leaf = [&](int rank) { return placement.leaves[static_cast<std::size_t>(rank)]; };
  base::Prng random(seed);
  topology::fat_tree::LinkLoads loads(tree);
  ScheduleLoads result;
  result.peak.resize(static_cast<std::size_t>(tree.directed_links()));
  std::vector<Flow> flows;
  for (std::size_t begin = 0; begin < messages.size();) {
    flows.clear();
    std::size_t end = begin;
    for (; end < messages.size() && messages[end].step == messages[begin].step; ++end) {
      flows.push_back({leaf(messages[end].source), leaf(messages[end].target)});
    }
    StepLoads step{messages[begin].step,
                   static_cast<std::int64_t>(flows.size()),
                   {},
                   {},
                   find_congestion(tree, flows)};
    // In the order of ranks, the choices of adaptive switches would agree, as in no real network.
    std::shuffle(flows.begin(), flows.end(), random);
    loads.clear();
    for (const Flow& flow : flows) loads.add(flow, 1, ascent, random);
    for (int level = 0; level < tree.levels(); ++level) {
      step.up.push_back(static_cast<int>(loads.greatest(true, level)));
      step.down.push_back(static_cast<int>(loads.greatest(false, level)));
    }
    for (std::size_t link = 0; link < result.peak.size(); ++link) {
      result.peak[link] = std::max(result.peak[link], static_cast<int>(loads.all()[link]));
    }
    result.steps.push_back(std::move(step));
    begin = end;
  }
  return result;
}

}  // namespace unisono::sim
