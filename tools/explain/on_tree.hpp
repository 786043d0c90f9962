// SPDX-License-Identifier: BSD-3-Clause
// The candidates of a call whose ranks are on the nodes of a fat tree. Prices leave out that
// messages meet on links; the simulation of events has that. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/result.hpp"
#include "model/costs.hpp"
#include "model/machine.hpp"
#include "topology/fat_tree/placement.hpp"

namespace unisono::tools {

struct SimulatedCandidate {
  std::string algorithm;
  double ns = 0;
  std::int64_t held_up = 0;  // messages that others delayed on a link
};

// All legal parameters of all rows, if they have so few steps that they are priced. The fastest is
// first; equal ones are in the order of the table. Links are shared, and switches take the way up
// that is least loaded. Errors: the machine does not say how fast a link is.
base::Result<std::vector<SimulatedCandidate>> simulate_on_tree(
    const schedule::Shape& shape, const model::Work& work, const model::Machine& machine,
    const topology::fat_tree::Placement& placement);

}  // namespace unisono::tools
