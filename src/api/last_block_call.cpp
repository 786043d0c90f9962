// SPDX-License-Identifier: BSD-3-Clause
#include "api/last_block_call.hpp"

namespace unisono::api {

using schedule::Collective;

LastBlockCall::LastBlockCall(const LastCall& checked, const Arguments& call, int rank, int ranks)
    : checked_(checked), scope_(call.blocks->scope) {
  const BlockArrays& blocks = *call.blocks;
  const bool is_root = call.root == rank;
  if (scope_ == CountScope::of_all) {
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
