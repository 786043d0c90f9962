// SPDX-License-Identifier: BSD-3-Clause
// AllgatherSegments: blocks of any length, the same at all ranks, in the NIC path. They are cut
// into operations of at most a packet each, and as many are in flight as the port allows. One
// allgather at a time; meanwhile no other code posts. One thread at a time. Data path: no
// allocation, no lock.
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

  // Starts with this rank's block. `result` has room for all ranks' blocks, one after another, or
  // is empty if they are not wanted. The block may lie in its own place there. Both must stay until
  // the end. The mark must be the same at all ranks. Call it only when the operation before has
  // ended.
  void begin(std::span<const std::byte> block, std::span<std::byte> result, std::uint32_t mark = 0);

  // Makes progress without waiting: copies the blocks that have arrived, and posts the pieces that
  // have room. True: all is done. While it is false, a waiting process calls
  // AllgatherPort::repair() as well. The error names the rank whose block has another length or
  // mark.
  base::Result<bool> step();
  // That rank; -1: none.
  int mismatching_rank() const { return mismatching_rank_; }

  // Bit o: rank o's block has arrived in the awaited operation. Call it while not all is done.
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
  std::uint64_t pieces_ = 0;    // pieces of the current block
  std::uint64_t posted_ = 0;    // ... of which so many are posted,
  std::uint64_t finished_ = 0;  // ... and so many are done and read
};

}  // namespace unisono::nic
