// SPDX-License-Identifier: BSD-3-Clause
// ByHost: a vector of all ranks' blocks in the order of hosts, and within a host in that of ranks,
// so that the blocks of a host are adjacent. If the ranks of each host are consecutive, it is the
// vector in the order of ranks. Only the algorithms `two-level` use it; any thread.
#pragma once

#include <span>
#include <vector>

#include "algorithm/two_level.hpp"

namespace unisono::algorithm::two_level {

class ByHost {
 public:
  ByHost(const Shape& shape, const Levels& levels);

  // Whether it is the vector in the order of ranks as well.
  bool is_sorted() const { return !shape_.hosts.given() || shape_.hosts.are_neighbours(); }

  std::int64_t count(int host) const { return counts_[static_cast<std::size_t>(host)]; }
  // The leaders' collective of the hosts' blocks.
  Shape inner() const;

  // A host's part of such a vector, and that of a rank, by its place in the host.
  Range part(Range vector, int host) const;
  Range part(Range vector, int host, int place) const;
  // The same for a vector that holds one host's part only.
  Range part_of_host(Range blocks, int host, int place) const;

  // output = vector, in the order of ranks; after all of `after`.
  void to_output(Builder& b, Range vector, std::span<const OpId> after) const;
  // A vector in the order of ranks, as one in that of hosts: itself, or in scratch memory.
  Value from_ranks(Builder& b, Value vector) const;

 private:
  schedule::Block block_of(int host, int place) const {
    return schedule::block(shape_, levels_.member(host, place));
  }

  const Shape& shape_;
  const Levels& levels_;
  std::vector<std::int64_t> counts_;  // elements of each host's blocks
};

}  // namespace unisono::algorithm::two_level
