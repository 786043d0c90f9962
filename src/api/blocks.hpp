// SPDX-License-Identifier: BSD-3-Clause
// The count arrays of a collective with blocks of different lengths, checked and copied. What is
// wrong is said with the entry of the array; who calls adds the function. Pure; any thread.
#pragma once

#include <cstdint>

#include "api/objects.hpp"
#include "base/result.hpp"
#include "group/call.hpp"

namespace unisono::api {

// Byte counts of whole vectors stay far from where 64 bits end.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;

struct CheckedBlocks {
  schedule::Blocks blocks;
  group::Displacements places;  // of the output's blocks; null: packed
  std::int64_t extent = 0;      // elements from the output's start to the end of its last block
};

// The blocks as `rank` of `ranks` gave them. A rank that gets no blocks needs no places for them.
base::Result<CheckedBlocks> check_blocks(const Arguments& arguments, int rank, int ranks,
                                         std::int64_t element_bytes);

}  // namespace unisono::api
