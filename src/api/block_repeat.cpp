// SPDX-License-Identifier: BSD-3-Clause
#include "api/block_repeat.hpp"

namespace unisono::api {

using schedule::Collective;

BlockRepeat::BlockRepeat(const Repeat& repeat, const Arguments& call, int rank, int ranks)
    : repeat_(repeat), knowledge_(call.blocks->knowledge) {
  const BlockArrays& blocks = *call.blocks;
  const bool is_root = call.root == rank;
  if (knowledge_ == Knowledge::of_all) {
    receives_.keep(blocks.receives, ranks);
    output_.counts.keep(blocks.output.counts, ranks);
    const bool gets = blocks.receives == nullptr || blocks.receives[rank] == 1;
    if (gets) output_.displacements.keep(blocks.output.displacements, ranks);
    return;
  }
  const bool exchanges = call.collective == Collective::alltoall;
  const bool has_input = exchanges ? call.input != UNISONO_IN_PLACE
                                   : call.collective == Collective::scatter && is_root;
  if (has_input) input_.keep(blocks.input, ranks);
  if (exchanges || (call.collective == Collective::gather && is_root)) {
    output_.keep(blocks.output, ranks);
  }
}

}  // namespace unisono::api
