// SPDX-License-Identifier: BSD-3-Clause
// The nodes of ranks on a fat tree, as options name them: a topology file, or a tree and its holes.
// Any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/machine.hpp"
#include "topology/fat_tree/placement.hpp"

namespace unisono::tools {

struct TreePlace {
  std::string topology;  // a file of ours or Slurm's; counts before the others
  std::string tree;      // ARITYxLEVELS; empty: the machine's
  std::string holes;     // nodes without a rank
};

// `asked_by` names the option that needs it, for the error.
base::Result<topology::fat_tree::Placement> find_placement(const TreePlace& place,
                                                           const model::Machine& machine, int ranks,
                                                           const std::string& asked_by);

}  // namespace unisono::tools
