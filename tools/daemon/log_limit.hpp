// SPDX-License-Identifier: BSD-3-Clause
// LogLimit: how many lines one user may cause in the daemon's log: a few in a time, and then the
// number of those that were left out. No clock of its own; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.hpp"

namespace unisono::daemon {

class LogLimit {
 public:
  static constexpr std::uint32_t kLines = 5;
  static constexpr std::int64_t kTimeNs = 60 * base::kSecond;

  // Whether a line may be written now, and how many were suppressed before it.
  std::optional<std::uint64_t> admit(std::uint32_t user, std::int64_t now_ns) {
    if (users_.size() > kMostUsers) forget_old(now_ns);
    User& own = users_[user];
    if (own.lines == 0 || now_ns - own.since_ns >= kTimeNs) {
      own.since_ns = now_ns;
      own.lines = 0;
    }
    if (own.lines == kLines) {
      ++own.left_out;
      return std::nullopt;
    }
    ++own.lines;
    const std::uint64_t left_out = own.left_out;
    own.left_out = 0;
    return left_out;
  }

 private:
  static constexpr std::size_t kMostUsers = 1024;
  struct User {
    std::int64_t since_ns = 0;
    std::uint32_t lines = 0;
    std::uint64_t left_out = 0;
  };

  void forget_old(std::int64_t now_ns) {
    std::erase_if(
        users_, [now_ns](const auto& entry) { return now_ns - entry.second.since_ns >= kTimeNs; });
  }

  std::map<std::uint32_t, User> users_;
};

}  // namespace unisono::daemon
