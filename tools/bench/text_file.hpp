// SPDX-License-Identifier: BSD-3-Clause
// The files that the benchmark writes besides its output. Rank 0 only.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::tools::bench {

// `option`: the option with which the user gave the path, for the error.
base::Status write_text_file(std::string_view option, const std::string& path,
                             const std::string& text);

}  // namespace unisono::tools::bench
