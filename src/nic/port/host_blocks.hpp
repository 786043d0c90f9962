// SPDX-License-Identifier: BSD-3-Clause
// HostBlocks: the ranks of one host write their blocks of an allgather side by side into the memory
// of their group, which goes into the NIC path as one block. This class counts them in shared
// memory: the last rank that has written its part of an operation posts it. A rank arrives at an
// operation only when it has read the one a depth before, so the count also shows that all have.
// Data path: no allocation, no lock. One thread of each rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace unisono::nic {

class HostBlocks {
 public:
  // The size of the memory, which is zero at first and aligned to a cache line.
  static std::int64_t memory_bytes(int ranks);
  // This rank is at `place`, of 0 .. ranks - 1.
  HostBlocks(std::byte* memory, int place, int ranks);

  // This rank's allgather number `call`. Both values must be the same at all ranks. It has ended
  // the one kInFlightMax before.
  void begin(std::uint64_t call, std::uint32_t mark, std::size_t block_bytes);
  // This rank has written its part of the operation; true: it is the last rank of the host.
  bool arrive(std::uint64_t sequence);
  // Whether all ranks of the host have arrived there.
  bool is_complete(std::uint64_t sequence) const;
  // The first place whose allgather differs from this rank's. Call it when all have arrived at an
  // operation of it.
  std::optional<int> mismatching_place(std::uint64_t call) const;

 private:
  struct Counter;
  struct Place;
  Counter& counter(std::uint64_t sequence) const;
  Place& at(std::uint64_t call, int place) const;
  std::uint64_t all(std::uint64_t sequence) const;

  std::byte* memory_;
  int place_;
  int ranks_;
};

}  // namespace unisono::nic
