// SPDX-License-Identifier: BSD-3-Clause
// How long a vector may be to go by the NIC path. Its packets are all in flight at once, so that
// who has given a vector need not come back to give more of it; so the longest one says how many
// operations a tree's port has room for, and what a host's ranks share. Which length pays is
// measured, not computed (docs/explanation/nic-path.md): programs add a word at a time, processors
// a cache line, so the longer the vector the less a wake-up matters. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/program/tables.h"
#include "schedule/shape.hpp"

namespace unisono::engine {

inline constexpr std::size_t kNicPacketBytes = UNISONO_NIC_WORDS_MAX * sizeof(std::uint64_t);
// Packets of the longest vector; a power of two, as the depth of a port.
inline constexpr std::uint32_t kNicPacketsMax = 4;
inline constexpr std::size_t kNicWordsMax = std::size_t{kNicPacketsMax} * UNISONO_NIC_WORDS_MAX;

// How many words of 64 bits hold so many bytes.
inline constexpr std::size_t words_of(std::size_t bytes) {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

inline bool nic_adds_floats(std::uint32_t combine) {
  const std::uint32_t how = combine & UNISONO_NIC_COMBINE_MASK;
  return how == UNISONO_NIC_SUM_FLOAT32 || how == UNISONO_NIC_SUM_FLOAT64;
}

// Up to which the NIC path is the faster one. `combine`: as lower_operator() says. A broadcast is a
// reduction there, with a contribution of every host, where processes need one multicast.
inline std::uint32_t nic_packets_that_pay(schedule::Collective collective, std::uint32_t combine) {
  if (collective == schedule::Collective::broadcast) return 1;
  return nic_adds_floats(combine) ? 2 : kNicPacketsMax;
}

}  // namespace unisono::engine
