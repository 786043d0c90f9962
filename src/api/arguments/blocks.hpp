// SPDX-License-Identifier: BSD-3-Clause
// The count arrays of a collective with blocks of different lengths, checked and copied. An error
// names the entry of the array; the caller adds the function. Pure; any thread.
#pragma once

#include <cstdint>

#include "api/arguments/block_arrays.hpp"
#include "api/objects.hpp"
#include "base/result.hpp"

namespace unisono::api {

struct CheckedBlocks {
  schedule::Blocks blocks;
  ReadBlocks input, output;  // where the buffer has blocks with places of their own
};

// The blocks as `rank` of `ranks` gave them. A rank that gets no blocks needs no displacements.
base::Result<CheckedBlocks> check_blocks(const Arguments& arguments, int rank, int ranks,
                                         std::int64_t element_bytes);

}  // namespace unisono::api
