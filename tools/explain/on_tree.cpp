// SPDX-License-Identifier: BSD-3-Clause
#include "explain/on_tree.hpp"

#include <algorithm>

#include "select/candidates.hpp"
#include "select/override.hpp"
#include "select/pricing.hpp"
#include "sim/events.hpp"

namespace unisono::tools {

base::Result<std::vector<SimulatedCandidate>> simulate_on_tree(
    const schedule::Shape& shape, const model::Work& work, const model::Machine& machine,
    const topology::fat_tree::Placement& placement) {
  if (!machine.tree) {
    return base::argument_error("the machine file does not say how fast a link is (tree)");
  }
  sim::EventOptions events;
  events.placement = &placement;
  events.network.contention = sim::Contention::sharing;
  events.network.ascent = topology::fat_tree::Ascent::least_loaded;
  events.network.link_ns_per_byte = machine.tree->link_per_byte.ns();
  std::vector<SimulatedCandidate> candidates;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    // Each rank is alone on its host, so that rows with two levels have the schedules of others.
    if (row.collective != shape.collective || row.uses_hosts || row.sums_exactly != shape.exact) {
      continue;
    }
    for (const algorithm::Parameters& parameters : select::parameters_to_price(row, shape)) {
      if (!select::can_do(row, shape, parameters) ||
          !select::is_priceable(row, parameters, shape)) {
        continue;
      }
      UNISONO_ASSIGN(
          const sim::ProgramSet programs,
          sim::ProgramSet::compile(
              shape.ranks, [&](int rank) { return algorithm::build(row, shape, parameters, rank); },
              machine, work));
      UNISONO_ASSIGN(const sim::EventOutcome simulated, sim::simulate_events(programs, events));
      candidates.push_back({.algorithm = algorithm::describe(row, parameters),
                            .ns = sim::to_ns(simulated.outcome.finish),
                            .held_up = simulated.held_up});
    }
  }
  std::ranges::stable_sort(candidates, {}, &SimulatedCandidate::ns);
  return candidates;
}

}  // namespace unisono::tools
