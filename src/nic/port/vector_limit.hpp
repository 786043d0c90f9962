// SPDX-License-Identifier: BSD-3-Clause
// The longest vector that the NIC path carries. All its packets are in flight at once, so a process
// that has posted its vector need not run again to post more of it. The limit therefore determines
// how many operations a tree's port has room for, and how much memory a host's ranks share.
// select/nic/pays.hpp decides from which length on host processes are faster. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/program/tables.h"

namespace unisono::nic {

inline constexpr std::size_t kPacketBytes = UNISONO_NIC_WORDS_MAX * sizeof(std::uint64_t);
// Packets of the longest vector; a power of two, as the depth of a port.
inline constexpr std::uint32_t kPacketsMax = 4;
inline constexpr std::size_t kWordsMax = std::size_t{kPacketsMax} * UNISONO_NIC_WORDS_MAX;
// The most pieces of a vector, each with a tree of its own.
inline constexpr int kPiecesMax = 4;

// How many words of 64 bits hold so many bytes.
inline constexpr std::size_t words_of(std::size_t bytes) {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

}  // namespace unisono::nic
