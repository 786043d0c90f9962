// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of topology files: an accepted placement has each rank on a leaf of its own within the
// tree; a refusal names the file, a line and what was expected.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "sim/topology_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto placement = unisono::sim::parse_topology(text, "f");
  if (!placement.ok()) {
    UNISONO_CHECK(placement.error().message.starts_with("f:"), "an error without its file");
    UNISONO_CHECK(placement.error().message.size() < 512, "a message as long as the text");
    return 0;
  }
  UNISONO_CHECK(placement->ranks() > 0, "a tree without nodes");
  UNISONO_CHECK(placement->names.empty() || placement->names.size() == placement->leaves.size(),
                "a name for each rank");
  std::vector<bool> taken(static_cast<std::size_t>(placement->tree.nodes()));
  for (const int leaf : placement->leaves) {
    UNISONO_CHECK(leaf >= 0 && leaf < placement->tree.nodes(), "a leaf outside the tree");
    UNISONO_CHECK(!taken[static_cast<std::size_t>(leaf)], "two ranks on one leaf");
    taken[static_cast<std::size_t>(leaf)] = true;
  }
  const auto again = unisono::sim::parse_topology(unisono::sim::topology_text(*placement), "f");
  UNISONO_CHECK(again.ok() && *again == *placement, "a placement changed in a round trip");
  return 0;
}
