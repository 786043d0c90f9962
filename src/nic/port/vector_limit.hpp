// SPDX-License-Identifier: BSD-3-Clause
// The longest vector that the NIC path carries. All its packets are in flight at once, so a process
// that has posted its vector need not run again to post more of it. The limit therefore determines
// how many operations a tree's port has room for, and how much memory a host's ranks share.
// select/nic/pays.hpp decides from which length on host processes are faster. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "nic/program/tables.h"

namespace unisono::nic {

inline constexpr std::size_t kPacketBytes = UNISONO_NIC_WORDS_MAX * sizeof(std::uint64_t);
// Packets of the longest vector; a power of two, as the depth of a port.
inline constexpr std::uint32_t kPacketsMax = 4;
inline constexpr std::size_t kWordsMax = std::size_t{kPacketsMax} * UNISONO_NIC_WORDS_MAX;
// The most pieces of a vector, each with a tree of its own.
inline constexpr int kPiecesMax = 4;
// The collectives of a group that a rank may have in flight at once. Short ones have a packet each,
// so that many fit a tree's port.
inline constexpr std::size_t kInFlightMax = kPacketsMax;

// How many words of 64 bits hold so many bytes.
inline constexpr std::size_t words_of(std::size_t bytes) {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

// The part of a vector that a rank contributes; the rest is zeros. No bytes: all of it is.
struct Contribution {
  const void* data = nullptr;
  std::size_t offset = 0, bytes = 0;

  // Copies the part that lies in the vector's range [start, start + out.size()), and sets the rest
  // to zero.
  void copy_to(std::span<std::byte> out, std::size_t start) const {
    std::ranges::fill(out, std::byte{0});
    const std::size_t from = std::max(start, offset);
    const std::size_t to = std::min(start + out.size(), offset + bytes);
    if (from >= to) return;
    std::memcpy(out.data() + (from - start), static_cast<const std::byte*>(data) + (from - offset),
                to - from);
  }
};

}  // namespace unisono::nic
