// SPDX-License-Identifier: BSD-3-Clause
// HostReduction: the ranks of one host combine their vectors in shared memory, so that one
// contribution goes into the NIC path for all of them. Each writes its vector to its own buffer and
// arrives at a counter. The last one combines them along the tree of the algorithm `two-level`, so
// the bits of the sum do not depend on which rank that was.
//
// Operations of an object follow one another: a rank contributes to the next one when it has the
// result of this one. The result includes the host's sum, so all have arrived here, and no rank
// reads the buffers any more. So one buffer for each rank is enough, and one counter that only
// grows. A group has an object for each operation in flight, and the ranks of the host use them by
// turns. Data path: no allocation, no lock. One thread of each rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arith/kernel.hpp"
#include "nic/port/vector_limit.hpp"

namespace unisono::engine {

class HostReduction {
 public:
  // The size of the memory, which is zero at first and aligned to a cache line.
  static std::int64_t memory_bytes(int ranks);
  // This rank is at `place`, of 0 .. ranks - 1; a parent of the tree takes `fan_in` a level.
  HostReduction(std::byte* memory, int place, int ranks, int fan_in);

  struct Contribution {
    std::uint32_t combine = 0;   // must be the same at all ranks, as must ...
    std::size_t bytes = 0;       // ... these, of the vector: at most nic::kWordsMax words
    nic::Contribution own = {};  // to the vector
  };
  // This rank's part of the next operation; true if it is the last to arrive. Then it calls
  // mismatching_place() and combine().
  bool give(const Contribution& own);
  // The first place whose contribution belongs to another call than this rank's.
  std::optional<int> mismatching_place() const;
  // The sum, in whole words, of `count` elements. Without a kernel at most one rank contributes,
  // and that is the sum; zeros if none does.
  std::span<const std::uint64_t> combine(arith::Kernel kernel, std::int64_t count);

  // Whether all have arrived at the last operation to which this rank has contributed.
  bool is_complete() const;

 private:
  struct Header;
  struct Place;
  Place& at(int place) const;
  std::atomic<std::uint64_t>& arrived() const;

  std::byte* memory_;
  int place_;
  int ranks_;
  std::uint64_t operations_ = 0;            // to which this rank has contributed
  std::vector<std::pair<int, int>> steps_;  // the combinations: target and source
};

}  // namespace unisono::engine
