// SPDX-License-Identifier: BSD-3-Clause
// Writes a subcommand's result into a file; base/file/read_file.hpp reads one. Control path; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::tools {

base::Status write_text_file(const std::string& path, std::string_view text);

}  // namespace unisono::tools
