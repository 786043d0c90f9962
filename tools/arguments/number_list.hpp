// SPDX-License-Identifier: BSD-3-Clause
// Lists of numbers as options take them: "8:4M" doubles from 8 to 4 MiB, "1:70" counts from 1 to
// 70, commas join pieces ("2,8,32", "1:16,64"). The error says which piece is wrong and what would
// be right. Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace unisono::tools {

enum class Step { doubling, one };

// Suffixes K, M, G are 1024 each. A doubling range ends with its last value even if that is no
// doubling of the first. Numbers below `low` or above `high` are errors. The order is as written.
base::Result<std::vector<std::int64_t>> parse_number_list(std::string_view text, Step step,
                                                          std::int64_t low, std::int64_t high);

}  // namespace unisono::tools
