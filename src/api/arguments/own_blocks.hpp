// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a collective with local counts: gatherv and scatterv at the root, alltoallv and
// alltoallw at all ranks. Blocks with unknown counts count as empty. Whether both ends of a block
// agree is checked when it arrives. Pure; any thread.
#pragma once

#include <cstdint>

#include "api/arguments/blocks.hpp"

namespace unisono::api {

// The blocks as `rank` of `ranks` gave them. The root, if the collective has one, is valid.
base::Result<CheckedBlocks> check_own_blocks(const Arguments& arguments, int rank, int ranks,
                                             std::int64_t element_bytes);

}  // namespace unisono::api
