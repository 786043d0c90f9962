// SPDX-License-Identifier: BSD-3-Clause
// Ring: blocks travel around a ring of the receivers, forwarded before they are copied. A sender
// that does not receive gives its block to the first receiver above it, where it enters the ring.
// One neighbour on each side, no contention on any network: for long blocks.
//
//   P = 5, blocks 1 0 2 0 0, receivers 0 1 4:
//   ring 0 -> 1 -> 4 -> 0;   block 0: 0 -> 1 -> 4;   block 2: 2 -> 4 -> 0 -> 1
//
// Steps: R-1 of R receivers; one more for a sender that does not receive. Bytes: (P-1) m where
// everyone sends and receives.
// Source: Kumar and Kalé, ICPADS 2004, section 4.2, for parts of the ranks.
#include "algorithm/pattern/ring.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/many_to_many/receivers.hpp"

namespace unisono::algorithm::many_to_many {

namespace {

// The ranks in the ring, and the positions where each sender's block enters it.
class Ring {
 public:
  explicit Ring(const Shape& shape) : receivers_(shape) {
    entering_.resize(static_cast<std::size_t>(receivers_.count()));
    for (int rank = 0; rank < shape.ranks && size() > 0; ++rank) {
      if (schedule::block(shape, rank).count == 0) continue;
      entering_[static_cast<std::size_t>(receivers_.position(rank))].push_back(rank);
    }
  }

  int size() const { return receivers_.count(); }
  int rank_at(int position) const { return receivers_.at(position); }
  // The position where the block of a sender enters the ring; for a rank in the ring, its own.
  int position(int rank) const { return receivers_.position(rank); }
  // The senders whose blocks a position passes on `hops` steps after they entered the ring.
  const std::vector<int>& passing(int position, int hops) const {
    return entering_[static_cast<std::size_t>(pattern::ring_block(size(), position, hops))];
  }
  // How many blocks of lower ranks than `sender` enter at a position from outside.
  SlotId slot_from_outside(int sender, int position) const {
    const auto& entering = entering_[static_cast<std::size_t>(position)];
    return static_cast<SlotId>(std::ranges::count_if(
        entering, [&](int each) { return each < sender && each != rank_at(position); }));
  }

 private:
  Receivers receivers_;
  std::vector<std::vector<int>> entering_;  // at each position, in the order of ranks
};

}  // namespace

Schedule ring(const Shape& shape, const Parameters&, int rank) {
  const Ring ring(shape);
  const Range own = schedule::input(0, schedule::block(shape, rank).count);
  const int position = ring.position(rank);
  if (!schedule::receives(shape, rank)) {
    Builder b(shape, rank, 1);
    if (own.count > 0 && ring.size() > 0) {
      b.send(ring.rank_at(position), ring.slot_from_outside(rank, position), own);
    }
    return std::move(b).take();
  }
  // Slots: the blocks that enter here from outside, then those of each hop, in the order of ranks.
  // A rank passes on all blocks. So at the next rank their numbers follow those of the blocks that
  // enter there.
  Builder b(shape, rank, 3 * shape.ranks);
  const int next = pattern::ring_next(ring.size(), position);
  const int previous = pattern::ring_previous(ring.size(), position);
  SlotId there = ring.slot_from_outside(shape.ranks, next);
  for (int hops = 0; hops < ring.size(); ++hops) {
    for (const int sender : ring.passing(position, hops)) {
      const schedule::Block block = schedule::block(shape, sender);
      Value value{own};
      if (sender != rank) {
        const SlotId slot = b.slot(hops == 0 ? sender : ring.rank_at(previous), block.count);
        value = {b.of(slot), b.wait(slot)};
      }
      if (hops + 1 < ring.size()) b.send(ring.rank_at(next), there++, value.range, {value.ready});
      b.copy(output(block), value.range, {value.ready});
    }
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::many_to_many
