// SPDX-License-Identifier: BSD-3-Clause
// The limits of one user, and of all users together. The last part of every resource is reserved
// for users who have little, so that one user cannot take all.
#pragma once

#include <cstdint>

#include "nic/program/tables.h"

namespace unisono::daemon {

// Limits of each user, over all processes.
struct Quota {
  std::uint32_t groups = 64;
  std::uint64_t bytes = std::uint64_t{32} << 20;  // includes memory that outlives its group
                                                  // (retained.hpp)
  std::uint32_t connections = 256;
  std::uint32_t descriptors = 64 * (2 + UNISONO_NIC_WAITERS_MAX);  // of its groups
  std::uint32_t joins_per_second = 50;  // once it has joined `groups` in a row
};

// Limits of all users together.
struct Capacity {
  std::uint32_t groups = UNISONO_NIC_ROWS_MAX;
  std::uint64_t bytes = std::uint64_t{512} << 20;
  std::uint32_t connections = 4096;
  std::uint32_t descriptors = 16384;  // of their groups

  // The same bytes, and the connections and descriptors that a process with `limit` descriptors in
  // all (RLIMIT_NOFILE) may have.
  static Capacity of_descriptors(std::uint64_t limit, std::uint64_t bytes);
};

// A user with fewer groups, or connections, has little.
inline constexpr std::uint32_t kLittle = 8;

// The part of a total that is reserved for users who have little.
constexpr std::uint64_t reserve_of(std::uint64_t total) { return total / 8; }

// Whether so much of a total is left for a user with `own` groups, or connections.
constexpr bool has_room(std::uint64_t used, std::uint64_t wanted, std::uint64_t total,
                        std::uint32_t own) {
  const std::uint64_t most = own < kLittle ? total : total - reserve_of(total);
  return used <= most && wanted <= most - used;
}

}  // namespace unisono::daemon
