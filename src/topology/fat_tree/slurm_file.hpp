// SPDX-License-Identifier: BSD-3-Clause
// Slurm's topology.conf as a placement: each switch with its switches or nodes. The file does not
// describe parallel links. So the network is taken as the smallest k-ary n-tree that holds it, with
// full bandwidth on all levels; places without a node are holes. Damaged files are refused with
// file, line and what was expected. Control path; any thread.
#pragma once

#include <string_view>

#include "topology/fat_tree/placement.hpp"

namespace unisono::topology::fat_tree {

// `file` is its name in errors.
base::Result<Placement> parse_slurm(std::string_view text, std::string_view file);

}  // namespace unisono::topology::fat_tree
