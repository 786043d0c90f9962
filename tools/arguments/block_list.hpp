// SPDX-License-Identifier: BSD-3-Clause
// Lengths of blocks as options take them: "3,0,2" for one block per rank; "1,2/3,4" for an
// alltoall, a list for each sender; and the receiving ranks, "0,2". Errors say what is wrong and
// what would be right. Any thread.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "schedule/shape.hpp"

namespace unisono::tools {

// `receivers`, for many_to_many: empty for all ranks.
base::Result<schedule::Blocks> parse_blocks(schedule::Collective collective, int ranks,
                                            std::string_view text, std::string_view receivers);

}  // namespace unisono::tools
