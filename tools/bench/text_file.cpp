// SPDX-License-Identifier: BSD-3-Clause
#include "bench/text_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace unisono::tools::bench {

base::Status write_text_file(std::string_view option, const std::string& path,
                             const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  if ((file != nullptr && std::fclose(file) != 0) || !written) {
    return base::Error{base::Code::argument, fmt::format("{}: cannot write '{}': {}", option, path,
                                                         std::strerror(errno))};
  }
  return base::success();
}

}  // namespace unisono::tools::bench
