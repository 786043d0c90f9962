// SPDX-License-Identifier: BSD-3-Clause
// Ways to put ranks on hosts, for tests that try them: pairs, hosts of very different sizes, ranks
// dealt out in turn, one rank a host, and others that follow from a seed.
#pragma once

#include <algorithm>
#include <vector>

#include "base/prng.hpp"
#include "topology/host_map.hpp"

namespace unisono::test {

// By rank, each once; those with one host are left out.
inline std::vector<std::vector<int>> host_labels(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::vector<int>> all(6, std::vector<int>(n));
  base::Prng random(static_cast<std::uint64_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    all[0][r] = rank / 2;
    all[1][r] = rank == 0 ? 0 : 1;                                  // one alone, all others
    all[2][r] = rank < ranks / 2 ? 0 : 1 + (rank - ranks / 2) / 3;  // half, and threes
    all[3][r] = rank % 3;                                           // dealt out
    all[4][r] = rank;                                               // alone
    all[5][r] = static_cast<int>(random.below((n + 2) / 2));        // anyhow
  }
  // Numbered without gaps, as a job numbers them.
  std::vector<std::vector<int>> numbered;
  for (const std::vector<int>& labels : all) {
    const auto map = topology::HostMap::of_labels(labels);
    if (!map.given()) continue;
    std::vector<int>& hosts = numbered.emplace_back(n);
    for (std::size_t r = 0; r < n; ++r) hosts[r] = map.of(static_cast<int>(r));
  }
  std::ranges::sort(numbered);
  numbered.erase(std::unique(numbered.begin(), numbered.end()), numbered.end());
  return numbered;
}

inline std::vector<topology::HostMap> host_maps(int ranks) {
  std::vector<topology::HostMap> maps;
  for (const auto& labels : host_labels(ranks)) {
    maps.push_back(topology::HostMap::of_labels(labels));
  }
  return maps;
}

}  // namespace unisono::test
