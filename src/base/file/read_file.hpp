// SPDX-License-Identifier: BSD-3-Clause
// read_file(): the whole content of a file that a user has named. A missing file, a directory in
// its place and a file beyond the limit are errors, which begin with the path. Nothing is thrown
// but for lack of memory. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace unisono::base {

// As large as a trace of a simulation may be.
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 34;
// The limit for a character device. One such as /dev/zero has no end, and would fill the memory.
inline constexpr std::size_t kMostDeviceBytes = std::size_t{1} << 26;

Result<std::string> read_file(const std::string& path, std::size_t most_bytes = kMostFileBytes);

}  // namespace unisono::base
