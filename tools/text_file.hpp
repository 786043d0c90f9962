// SPDX-License-Identifier: BSD-3-Clause
// Whole files as text, for subcommands. Control path; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::tools {

base::Result<std::string> read_text_file(const std::string& path);
base::Status write_text_file(const std::string& path, std::string_view text);

}  // namespace unisono::tools
