// SPDX-License-Identifier: BSD-3-Clause
#include "log.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace unisono::mpi {
namespace {

bool informs() {
  const char* const level = std::getenv("UNISONO_LOG");
  return level != nullptr && (std::strcmp(level, "info") == 0 || std::strcmp(level, "debug") == 0);
}

// One write for each line, so that lines of several ranks do not mix.
void write_line(const char* format, va_list arguments) {
  char line[1024];
  int length =
      std::snprintf(line, sizeof line, "unisono: mpi: pid %d: ", static_cast<int>(getpid()));
  length += std::vsnprintf(line + length, sizeof line - static_cast<std::size_t>(length), format,
                           arguments);
  std::fprintf(stderr, "%.*s\n", length, line);
}

}  // namespace

void log_info(const char* format, ...) {
  static const bool shown = informs();
  if (!shown) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void log_warning(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

}  // namespace unisono::mpi
