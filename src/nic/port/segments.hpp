// SPDX-License-Identifier: BSD-3-Clause
// Segments: a vector of any length in the NIC path, as operations of a packet or less each, of
// which as many are in flight as the port allows. All ranks cut alike: element i of the result is
// in the same operation everywhere. One vector at a time; while one is under way, nobody else
// posts. One thread at a time. Data path: no allocation, no lock.
#pragma once

#include <cstdint>
#include <span>

#include "nic/port/port.hpp"

namespace unisono::nic {

class Segments {
 public:
  // No piece is longer than `piece_words`, 1 .. UNISONO_NIC_WORDS_MAX, the same at all ranks. Short
  // pieces follow one another up the tree sooner, and cost a header each. The port outlives this.
  explicit Segments(Port& port, std::uint32_t piece_words = UNISONO_NIC_WORDS_MAX);

  // How many operations a vector takes: the fewest, of which none is empty but a barrier's.
  static std::uint64_t pieces(std::size_t words, std::uint32_t piece_words);

  // Starts with a vector of words, combined as lower_operator() says. `result`, of the same length
  // or empty if it is not wanted, may be the vector's own memory; both stay until it has ended.
  // Only when what began before has ended.
  void begin(std::uint32_t combine, std::span<const std::uint64_t> vector,
             std::span<std::uint64_t> result);

  // Does what can be done without waiting: takes the results that are there, and gives the pieces
  // that have room. True: all is done. While it is false, who waits calls Port::repair() as well.
  base::Result<bool> step();

 private:
  std::span<const std::uint64_t> piece(std::uint64_t number) const;

  Port& port_;
  const std::uint32_t piece_words_;
  std::uint32_t combine_ = UNISONO_NIC_NOTHING;
  std::span<const std::uint64_t> vector_;
  std::span<std::uint64_t> result_;
  std::uint64_t first_ = 0;     // operation that has the first piece
  std::uint64_t pieces_ = 0;    // of the vector under way; of those ...
  std::uint64_t posted_ = 0;    // ... so many are given,
  std::uint64_t finished_ = 0;  // and of these, so many are done and their results taken
};

}  // namespace unisono::nic
