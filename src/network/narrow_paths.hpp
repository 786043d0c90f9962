// SPDX-License-Identifier: BSD-3-Clause
// Log lines about paths between hosts that carry less than the interfaces at their ends. Control
// path: once a path.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "network/hosts.hpp"

namespace unisono::network {

// For reliable::ReliableOptions::narrowed. `full_bytes`: the longest datagram allowed. The first
// time is a warning; a rank may have many peers behind one switch.
std::function<void(int rank, std::size_t most_bytes)> narrow_path_log(Hosts hosts,
                                                                      std::size_t full_bytes);

// The ranks to which a rank sends full datagrams at the start, to find out whether they arrive.
// The hosts' distances are powers of two, as in trees, rings and cubes, so that many hosts need few
// probes. Empty for a rank that is not its host's first.
std::vector<int> neighbours_of(int rank, const topology::HostMap& hosts);

}  // namespace unisono::network
