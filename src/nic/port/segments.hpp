// SPDX-License-Identifier: BSD-3-Clause
// Segments: a vector of any length in the NIC path. It is cut into operations of at most a packet
// each, and as many are in flight as the port allows. All ranks cut alike: element i of the result
// is in the same operation at all ranks. One vector at a time; meanwhile no other code posts. One
// thread at a time. Data path: no allocation, no lock.
#pragma once

#include <cstdint>
#include <span>

#include "nic/port/port.hpp"

namespace unisono::nic {

class Segments {
 public:
  // No piece is longer than `piece_words`, 1 .. UNISONO_NIC_WORDS_MAX, the same at all ranks. Short
  // pieces start up the tree sooner, but each costs a header. The port outlives this.
  explicit Segments(Port& port, std::uint32_t piece_words = UNISONO_NIC_WORDS_MAX);

  // The number of operations for a vector: the fewest possible. None is empty but a barrier's.
  static std::uint64_t pieces(std::size_t words, std::uint32_t piece_words);

  // Starts with a vector of words, combined by lower_operator(). `result`, of the same length or
  // empty if it is not wanted, may be the vector's own memory. Both must stay until the end. Call
  // it only when the vector before has ended.
  void begin(std::uint32_t combine, std::span<const std::uint64_t> vector,
             std::span<std::uint64_t> result);

  // Makes progress without waiting: copies the results that have arrived, and posts the pieces that
  // have room. True: all is done. While it is false, a waiting process calls Port::repair() as
  // well.
  base::Result<bool> step();

 private:
  std::span<const std::uint64_t> piece(std::uint64_t number) const;

  Port& port_;
  const std::uint32_t piece_words_;
  std::uint32_t combine_ = UNISONO_NIC_NOTHING;
  std::span<const std::uint64_t> vector_;
  std::span<std::uint64_t> result_;
  std::uint64_t first_ = 0;     // operation that has the first piece
  std::uint64_t pieces_ = 0;    // pieces of the current vector
  std::uint64_t posted_ = 0;    // ... of which so many are posted,
  std::uint64_t finished_ = 0;  // ... and so many are done and their results read
};

}  // namespace unisono::nic
