// SPDX-License-Identifier: BSD-3-Clause
// Topology files: Slurm's topology.conf, or JSON of our own (docs/reference/topology-file.md),
// which begins with a brace. A file is read whole or refused with file, line and what was expected.
// Control path; any thread.
#pragma once

#include <string>
#include <string_view>

#include "topology/fat_tree/placement.hpp"

namespace unisono::sim {

inline constexpr int kTopologyFileVersion = 1;
// A million nodes with names of 60 bytes.
inline constexpr std::size_t kMostTopologyFileBytes = std::size_t{1} << 26;

// `file` is its name in errors.
base::Result<topology::fat_tree::Placement> parse_topology(std::string_view text,
                                                           std::string_view file);
base::Result<topology::fat_tree::Placement> read_topology_file(const std::string& path);

// As JSON, which parse_topology() reads back.
std::string topology_text(const topology::fat_tree::Placement& placement);

}  // namespace unisono::sim
