// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/host_list.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/text.hpp"

namespace unisono::tools {
namespace {

base::Error wrong_hosts(std::string_view text, const std::string& why) {
  return {base::Code::argument, fmt::format("--hosts: '{}' {}", text, why)};
}

base::Result<int> parse_size(std::string_view text, std::string_view piece, int ranks) {
  const auto size = base::parse_integer(piece);
  if (size && *size >= 1 && *size <= ranks) return static_cast<int>(*size);
  return wrong_hosts(text,
                     fmt::format("has '{}' where a number from 1 to {} should stand, as in 4x2 or "
                                 "3,1,2",
                                 piece, ranks));
}

base::Result<std::vector<int>> parse_sizes(int ranks, std::string_view text,
                                           std::string_view sizes) {
  std::vector<int> all;
  if (const std::size_t times = sizes.find('x'); times != std::string_view::npos) {
    UNISONO_ASSIGN(const int hosts, parse_size(text, sizes.substr(0, times), ranks));
    UNISONO_ASSIGN(const int each, parse_size(text, sizes.substr(times + 1), ranks));
    all.assign(static_cast<std::size_t>(hosts), each);
    return all;
  }
  for (;;) {
    const std::size_t comma = sizes.find(',');
    UNISONO_ASSIGN(const int size, parse_size(text, sizes.substr(0, comma), ranks));
    all.push_back(size);
    if (comma == std::string_view::npos) return all;
    sizes.remove_prefix(comma + 1);
  }
}

// Hosts by rank: one rank on each host that has room, and again.
std::vector<int> deal(std::vector<int> room, int ranks) {
  std::vector<int> labels;
  while (static_cast<int>(labels.size()) < ranks) {
    for (std::size_t host = 0; host < room.size(); ++host) {
      if (room[host]-- > 0) labels.push_back(static_cast<int>(host));
    }
  }
  return labels;
}

}  // namespace

base::Result<topology::HostMap> parse_hosts(int ranks, std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool cyclic = colon != std::string_view::npos;
  if (cyclic && text.substr(colon) != ":cyclic") {
    return wrong_hosts(text, "ends unlike 4x2 or 4x2:cyclic");
  }
  UNISONO_ASSIGN(const std::vector<int> sizes, parse_sizes(ranks, text, text.substr(0, colon)));
  const auto total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (total != ranks) {
    return wrong_hosts(text, fmt::format("has places for {} ranks, not for {}", total, ranks));
  }
  if (cyclic) return topology::HostMap::of_labels(deal(sizes, ranks));
  std::vector<int> labels;
  for (std::size_t host = 0; host < sizes.size(); ++host) {
    labels.insert(labels.end(), static_cast<std::size_t>(sizes[host]), static_cast<int>(host));
  }
  return topology::HostMap::of_labels(labels);
}

}  // namespace unisono::tools
