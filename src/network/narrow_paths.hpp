// SPDX-License-Identifier: BSD-3-Clause
// Log lines about paths between hosts that carry less than the interfaces at their ends. Control
// path: once a path.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "bootstrap/job_info.hpp"

namespace unisono::network {

// For reliable::ReliableOptions::narrowed. `full_bytes`: the longest datagram allowed. The first
// time is a warning; a rank may have many peers behind one switch.
std::function<void(int rank, std::size_t most_bytes)> narrow_path_log(
    const std::vector<bootstrap::Member>& members, std::size_t full_bytes);

// By rank.
std::vector<int> hosts_of(const std::vector<bootstrap::Member>& members);

// The ranks to which a rank sends full datagrams at the start, to find out whether they arrive.
// `firsts`: the first rank of each host. The distances are powers of two, as in trees, rings and
// cubes, so that many hosts need few probes. Empty for a rank that is not its host's first.
std::vector<int> neighbours_of(int rank, const std::vector<int>& firsts);

}  // namespace unisono::network
