// SPDX-License-Identifier: BSD-3-Clause
// Blocks: how long the parts are that a collective moves, where they are not all equal. One block a
// rank, or, for alltoall, one a pair of ranks. Offsets are sums of counts, computed once; a block
// may be empty. Copies share the numbers, because a shape and every schedule made for it hold one.
// In MPI a rank may know its own counts only; what it does not know counts as 0 here, so that they
// are the blocks of a smaller exchange, in which nobody deals with anybody but that rank. A value;
// any thread.
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
  // None given: all blocks are as long as the shape's count says.
  Blocks() = default;

  // counts[r]: the block of rank r. receivers[r], for many_to_many: whether r gets all blocks;
  // none: everyone does. Errors: Code::argument for a negative count or too many elements.
  static base::Result<Blocks> of_ranks(const std::vector<std::int64_t>& counts,
                                       std::vector<bool> receivers = {});
  // counts[from * ranks + to]: what `from` sends to `to`.
  static base::Result<Blocks> of_pairs(int ranks, const std::vector<std::int64_t>& counts);
  // What `rank` knows of them: what it sends to each rank and receives from each.
  static base::Result<Blocks> of_pairs_of(int rank, const std::vector<std::int64_t>& sent,
                                          const std::vector<std::int64_t>& received);

  bool given() const { return numbers_ != nullptr; }
  // The following are for blocks that are given.
  int ranks() const;
  bool are_pairs() const;

  // One block a rank: its place in the vector of all of them.
  Block of(int rank) const;
  std::int64_t total() const;
  bool receives(int rank) const;
  bool all_receive() const;

  // One block a pair: its place in what `from` sends, and in what `to` receives.
  Block sent(int from, int to) const;
  Block received(int from, int to) const;
  std::int64_t sent_total(int from) const;
  std::int64_t received_total(int to) const;

  // Equal counts (and receivers), whether or not they are the same in memory.
  friend bool operator==(const Blocks& a, const Blocks& b);

 private:
  struct Numbers;
  static base::Result<Blocks> make(Numbers numbers);
  static bool counts_equal(const Blocks& a, const Blocks& b);  // of pairs
  // The place of what `peer` sends or gets in a vector of which known_to's part alone is known.
  Block single_block(std::int64_t count, int peer) const;

  std::shared_ptr<const Numbers> numbers_;
};

}  // namespace unisono::schedule
