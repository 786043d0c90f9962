// SPDX-License-Identifier: BSD-3-Clause
// Exact: the common part of the algorithms `exact-*`. No partial sums travel, but the contributions
// themselves. The rank that needs a result combines all of them in one sum step, in the order of
// ranks. Floating-point sums are then rounded once, so that their bits depend on nothing but the
// contributions. Only algorithm files use it; any thread with its own Builder.
#pragma once

#include <span>
#include <vector>

#include "algorithm/emit.hpp"

namespace unisono::algorithm::exact {

// Among `ranks` in a circle, each has a slot for every other rank, numbered by the distance from
// it.
inline SlotId slot_from(int ranks, int source, int at) {
  return static_cast<SlotId>((at - source + ranks) % ranks - 1);
}

// target = the contributions of the ranks 0 ... last, where `own` is that of `rank`.
// slot_at(source) is the slot of another rank; the first slots are theirs. After all of `ready`.
template <class SlotAt>
OpId sum_up_to(Builder& b, Range target, Range own, int rank, int last, const SlotAt& slot_at,
               std::span<const OpId> ready) {
  std::vector<Range> operands;
  for (int source = 0; source <= last; ++source) {
    operands.push_back(source == rank ? own : b.of(slot_at(source)));
  }
  std::vector<OpId> arrived;
  for (SlotId slot = 0; slot < last + (rank > last ? 1 : 0); ++slot)
    arrived.push_back(b.wait(slot));
  const OpId summed = b.sum(target, operands);
  for (const OpId wait : arrived) b.also_after(wait);
  for (const OpId op : ready) b.also_after(op);
  return summed;
}

// The slots for contributions of `count` elements to `rank` by all others, and the sends of the
// others' blocks. block_of(peer) is the part of the input that a peer sums.
template <class BlockOf>
std::vector<OpId> exchange_blocks(Builder& b, int ranks, int rank, const BlockOf& block_of) {
  for (int distance = 1; distance < ranks; ++distance) {
    b.slot((rank - distance + ranks) % ranks, block_of(rank).count);
  }
  std::vector<OpId> sends;
  for (int distance = 1; distance < ranks; ++distance) {
    const int peer = (rank + distance) % ranks;
    sends.push_back(b.send(peer, distance - 1, block_of(peer)));
  }
  return sends;
}

}  // namespace unisono::algorithm::exact
