// SPDX-License-Identifier: BSD-3-Clause
// Blocks of unequal lengths for tests: counts that follow from a seed, many of them 0; and the
// local counts of a single rank.
#pragma once

#include "base/prng.hpp"
#include "schedule/shape.hpp"

namespace unisono::test {

// For a collective with blocks. `symmetric`, for pairs: both ways alike, so that an alltoall can be
// in place. In a many_to_many, some ranks receive. Counts are multiples of `unit`.
inline schedule::Blocks unequal_blocks(schedule::Collective collective, int ranks,
                                       std::uint64_t seed, bool symmetric = false,
                                       std::int64_t unit = 1) {
  base::Prng random(seed);
  const auto n = static_cast<std::size_t>(ranks);
  const auto count = [&] {
    return random.below(3) == 0 ? 0 : unit * static_cast<std::int64_t>(random.below(6));
  };
  if (schedule::has_pairs(collective)) {
    std::vector<std::int64_t> counts(n * n);
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < n; ++to) {
        counts[from * n + to] = symmetric && to < from ? counts[to * n + from] : count();
      }
    }
    return *schedule::Blocks::of_pairs(ranks, counts);
  }
  std::vector<std::int64_t> counts(n);
  for (std::int64_t& each : counts) each = count();
  std::vector<bool> receivers;
  if (collective == schedule::Collective::many_to_many) {
    for (int rank = 0; rank < ranks; ++rank) receivers.push_back(random.below(2) == 0);
  }
  return *schedule::Blocks::of_ranks(counts, std::move(receivers));
}

// The blocks of a gather, scatter or alltoall that the rank sends or receives. At the root of a
// gather or scatter these are all.
inline schedule::Blocks blocks_known_to(const schedule::Shape& shape, int rank) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  if (schedule::is_rooted(shape.collective)) {
    if (rank == shape.root) return shape.blocks;
    std::vector<std::int64_t> counts(ranks, 0);
    counts[static_cast<std::size_t>(rank)] = shape.blocks.of(rank).count;
    return *schedule::Blocks::of_ranks(counts);
  }
  std::vector<std::int64_t> sent, received;
  for (int peer = 0; peer < shape.ranks; ++peer) {
    sent.push_back(shape.blocks.sent(rank, peer).count);
    received.push_back(shape.blocks.received(peer, rank).count);
  }
  return *schedule::Blocks::of_pairs_of(rank, sent, received);
}

}  // namespace unisono::test
