// SPDX-License-Identifier: BSD-3-Clause
#include "base/file/read_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptor.hpp"

namespace unisono::base {

// Not by a stream: a directory can be opened, and its first read then throws.
Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return system_error(path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) == 0 && S_ISCHR(status.st_mode)) {
    most_bytes = std::min(most_bytes, kMostDeviceBytes);
  }
  constexpr std::size_t kStep = 1 << 16;
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t count = read(file.get(), text.data() + before, kStep);
    if (count < 0 && errno != EINTR) return system_error(path, errno);
    text.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count == 0) return text;
    if (text.size() > most_bytes) {
      return Error{Code::resources, fmt::format("{}: expected at most {} bytes", path, most_bytes)};
    }
  }
}

}  // namespace unisono::base
