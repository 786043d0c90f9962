// SPDX-License-Identifier: BSD-3-Clause
// What one user may have of the daemon, and what the daemon has for all of them. The last part of
// everything is kept for users who have little, so that those who have much cannot take all.
#pragma once

#include <cstdint>

#include "nic/program/tables.h"

namespace unisono::daemon {

// Of each user, all processes together.
struct Quota {
  std::uint32_t groups = 64;
  std::uint64_t bytes = std::uint64_t{32} << 20;  // also what outlives its group (retained.hpp)
  std::uint32_t connections = 256;
  std::uint32_t descriptors = 64 * (2 + UNISONO_NIC_WAITERS_MAX);  // of its groups
  std::uint32_t joins_per_second = 50;  // once it has joined `groups` in a row
};

// Of all users together.
struct Capacity {
  std::uint32_t groups = UNISONO_NIC_ROWS_MAX;
  std::uint64_t bytes = std::uint64_t{512} << 20;
  std::uint32_t connections = 4096;
  std::uint32_t descriptors = 16384;  // of their groups

  // The same bytes with what a process may have of connections and descriptors, if it has `limit`
  // descriptors in all (RLIMIT_NOFILE).
  static Capacity of_descriptors(std::uint64_t limit, std::uint64_t bytes);
};

// Who has fewer groups, or connections, has little.
inline constexpr std::uint32_t kLittle = 8;

// What of a total only users who have little may take.
constexpr std::uint64_t reserve_of(std::uint64_t total) { return total / 8; }

// Whether so much of a total is left for a user who has `own` groups, or connections.
constexpr bool has_room(std::uint64_t used, std::uint64_t wanted, std::uint64_t total,
                        std::uint32_t own) {
  const std::uint64_t most = own < kLittle ? total : total - reserve_of(total);
  return used <= most && wanted <= most - used;
}

}  // namespace unisono::daemon
