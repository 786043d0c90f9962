// SPDX-License-Identifier: BSD-3-Clause
#include "text_file.hpp"

#include <cerrno>
#include <cstdio>

namespace unisono::tools {

base::Status write_text_file(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return base::system_error(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return base::system_error(path, errno);
  return base::success();
}

}  // namespace unisono::tools
