// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments/blocks.hpp"

#include <vector>

namespace unisono::api {
namespace {

using base::Result;

Result<std::vector<bool>> read_receivers(const int* receives, int ranks) {
  std::vector<bool> receivers;
  for (int r = 0; receives != nullptr && r < ranks; ++r) {
    const int mark = receives[r];
    if (mark != 0 && mark != 1) {
      return wrong_argument(
          "receives[{}] is {}; it must be 1 for a rank that gets the blocks, and 0 for one that "
          "does not",
          r, mark);
    }
    receivers.push_back(mark == 1);
  }
  return receivers;
}

}  // namespace

Result<CheckedBlocks> check_blocks(const Arguments& arguments, int rank, int ranks,
                                   std::int64_t element_bytes) {
  const auto own = static_cast<std::size_t>(rank);
  const ArraySource source{arguments.blocks->output, ranks, element_bytes};
  UNISONO_ASSIGN(std::vector<std::int64_t> counts, read_counts(source));
  UNISONO_ASSIGN(std::vector<bool> receivers, read_receivers(arguments.blocks->receives, ranks));
  const bool gives_count = arguments.collective != schedule::Collective::reduce_scatter;
  if (gives_count && arguments.input != UNISONO_IN_PLACE && arguments.count != counts[own]) {
    return wrong_argument(
        "count is {}, but counts[{}], which is this rank's, is {}; they must be equal",
        arguments.count, rank, counts[own]);
  }
  const bool has_output = receivers.empty() || receivers[own];
  CheckedBlocks checked;
  UNISONO_ASSIGN(checked.blocks, schedule::Blocks::of_ranks(counts, std::move(receivers)));
  if (has_output) {
    UNISONO_ASSIGN(checked.output, read_places(source, std::move(counts), Overlap::refused));
  }
  return checked;
}

}  // namespace unisono::api
