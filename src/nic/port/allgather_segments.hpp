// SPDX-License-Identifier: BSD-3-Clause
// AllgatherSegments: blocks of any length, the same at all ranks, in the NIC path, as operations of
// a packet or less each, of which as many are in flight as the port allows. One allgather at a
// time; while one is under way, nobody else posts. One thread at a time. Data path: no allocation,
// no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/port/allgather_port.hpp"

namespace unisono::nic {

class AllgatherSegments {
 public:
  // The port outlives this.
  explicit AllgatherSegments(AllgatherPort& port) : port_(port), piece_bytes_(port.most_bytes()) {}

  // How many operations a block takes: the fewest; one if it is empty.
  static std::uint64_t pieces(std::size_t bytes, std::size_t piece_bytes);

  // Starts with this rank's block. `result` has room for all ranks', one after another, or is empty
  // if they are not wanted; the block may be its own place there. Both stay until it has ended. The
  // mark has to be the same at all ranks. Only when what began before has ended.
  void begin(std::span<const std::byte> block, std::span<std::byte> result, std::uint32_t mark = 0);

  // Does what can be done without waiting: takes the blocks that are there, and gives the pieces
  // that have room. True: all is done. While it is false, who waits calls AllgatherPort::repair()
  // as well. The error names the rank whose block has another length or mark.
  base::Result<bool> step();
  // That rank; -1: none.
  int mismatching_rank() const { return mismatching_rank_; }

  // Bit o: what this waits for has rank o's block. While it is not done.
  std::uint64_t arrived() const { return port_.arrived(awaited()); }
  // When the last block was there, once all is done; by the clock of base/clock.hpp.
  std::int64_t done_ns() const { return port_.done_ns(first_ + pieces_ - 1); }
  // The operation that this waits for.
  std::uint64_t awaited() const { return first_ + finished_; }

 private:
  std::span<const std::byte> piece(std::uint64_t number) const;
  base::Status take(std::uint64_t number);

  AllgatherPort& port_;
  const std::size_t piece_bytes_;
  std::span<const std::byte> block_;
  std::span<std::byte> result_;
  std::uint32_t mark_ = 0;
  int mismatching_rank_ = -1;
  std::uint64_t first_ = 0;     // operation that has the first piece
  std::uint64_t pieces_ = 0;    // of the block under way; of those ...
  std::uint64_t posted_ = 0;    // ... so many are given,
  std::uint64_t finished_ = 0;  // and of these, so many are done and taken
};

}  // namespace unisono::nic
