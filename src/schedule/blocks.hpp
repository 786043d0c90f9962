// SPDX-License-Identifier: BSD-3-Clause
// Blocks: the lengths of the parts that a collective moves, where they differ. There is one block
// for each rank or, for alltoall, one for each pair of ranks. Offsets are sums of counts, computed
// once; a block may be empty. Copies share the numbers, because a shape and every schedule made for
// it hold one. In MPI a rank may know only its local counts. Unknown counts are 0 here. Such blocks
// describe a smaller exchange, in which other ranks exchange data with that rank only. A value; any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace unisono::schedule {

// A part of a vector: `count` elements from element `offset`.
struct Block {
  std::int64_t offset = 0, count = 0;

  bool operator==(const Block&) const = default;
};

class Blocks {
 public:
  // No lengths: all blocks are as long as the shape's count says.
  Blocks() = default;

  // counts[r]: the block of rank r. receivers[r], for many_to_many: whether r gets all blocks; if
  // empty, all ranks do. Errors: Code::argument for a negative count or too many elements.
  static base::Result<Blocks> of_ranks(const std::vector<std::int64_t>& counts,
                                       std::vector<bool> receivers = {});
  // counts[from * ranks + to]: the number of elements that `from` sends to `to`.
  static base::Result<Blocks> of_pairs(int ranks, const std::vector<std::int64_t>& counts);
  // The local counts of `rank`: what it sends to each rank and receives from each.
  static base::Result<Blocks> of_pairs_of(int rank, const std::vector<std::int64_t>& sent,
                                          const std::vector<std::int64_t>& received);

  bool given() const { return numbers_ != nullptr; }
  // The following functions need blocks with lengths.
  int ranks() const;
  bool are_pairs() const;

  // One block for each rank: its position in the vector of all of them.
  Block of(int rank) const;
  std::int64_t total() const;
  bool receives(int rank) const;
  bool all_receive() const;

  // One block for each pair: its position in the input of `from`, and in the output of `to`.
  Block sent(int from, int to) const;
  Block received(int from, int to) const;
  std::int64_t sent_total(int from) const;
  std::int64_t received_total(int to) const;

  // Compares counts and receivers, also of blocks that do not share them.
  friend bool operator==(const Blocks& a, const Blocks& b);

 private:
  struct Numbers;
  static base::Result<Blocks> make(Numbers numbers);
  static bool counts_equal(const Blocks& a, const Blocks& b);  // of pairs
  // The block exchanged with `peer`, in a vector of which only the part of `known_to` is known.
  Block single_block(std::int64_t count, int peer) const;

  std::shared_ptr<const Numbers> numbers_;
};

}  // namespace unisono::schedule
