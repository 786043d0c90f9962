// SPDX-License-Identifier: BSD-3-Clause
// Places: allocates runs of neighbouring indices of a table; the lowest free run is taken. Groups
// change rarely, so it searches all runs. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/check.hpp"

namespace unisono::nic {

class Places {
 public:
  explicit Places(std::uint32_t total) : total_(total) {}

  // The first of `count` neighbouring free indices, now in use; nullopt if there is no such run.
  // count > 0.
  std::optional<std::uint32_t> take(std::uint32_t count) {
    std::uint32_t first = 0;
    for (const auto& [start, length] : used_) {
      if (start - first >= count) break;
      first = start + length;
    }
    if (total_ - first < count) return std::nullopt;
    used_.emplace(first, count);
    return first;
  }

  // Frees a run that take() returned.
  void free(std::uint32_t first) {
    UNISONO_CHECK(used_.erase(first) == 1, "Places::free of a run that is not in use");
  }

 private:
  std::uint32_t total_;
  std::map<std::uint32_t, std::uint32_t> used_;  // first index and length of each run
};

}  // namespace unisono::nic
