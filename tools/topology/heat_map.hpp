// SPDX-License-Identifier: BSD-3-Clause
// Link loads of a fat tree as an SVG picture: a strip of cells for each level and direction, a cell
// for each link, coloured by its load; the nodes with their ranks and holes below. Pure; any
// thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "topology/fat_tree/placement.hpp"

namespace unisono::tools {

// loads[link] as fat_tree::Tree numbers directed links.
std::string heat_map(const topology::fat_tree::Placement& placement, std::span<const int> loads,
                     std::string_view title);

}  // namespace unisono::tools
