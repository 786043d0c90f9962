// SPDX-License-Identifier: BSD-3-Clause
// A check for options that take a seed. CLI11 wraps a negative number, and takes one that is too
// large as the greatest of all. Any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace unisono::tools {

inline CLI::Validator seed_range() {
  constexpr std::int64_t kMostSeed = std::int64_t{1} << 62;
  return CLI::Range(std::int64_t{0}, kMostSeed);
}

}  // namespace unisono::tools
