// SPDX-License-Identifier: BSD-3-Clause
// Circulant reduction: the rounds of broadcast/circulant backwards. A rank combines the segments
// that it would have sent, as they come from the ranks one skip above, and sends the segment that
// it would have received to the rank one skip below. Every segment so climbs a tree of its own, and
// in each round a rank sends and receives one of them.
//
//   P = 5, root 0, 3 segments; segment: sender > receiver
//   round 4, skip 3    0: 1>3    1: 2>4    2: 3>0    2: 4>1
//   round 3, skip 2    1: 1>4    2: 2>0    0: 4>2
//   round 2, skip 1    2: 1>0    0: 3>2    1: 4>3
//   round 1, skip 3    1: 3>0
//   round 0, skip 2    0: 2>0
//
// Steps: at most s - 1 + ceil(log2 P), s the segments. Bytes: n.
// The trees differ from segment to segment and are not in the order of ranks: the operator has to
// commute. Source: Träff, arXiv 2407.18004.
#include "algorithm/pattern/circulant.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::reduce {

namespace {

// The slots of a rank, by rounds from the last one on: they are numbered in the order of the
// messages that it takes.
class SlotsOfRank {
 public:
  // `taken` is what it takes by round.
  explicit SlotsOfRank(std::span<const int> taken)
      : taken_(taken), round_(static_cast<int>(taken.size())) {}
  SlotsOfRank() = default;

  bool is_known() const { return round_ >= 0; }
  // The slot of the message in a round, which is before those that were asked for.
  SlotId slot_in(int round) {
    while (--round_ > round) {
      if (taken_[static_cast<std::size_t>(round_)] >= 0) ++next_;
    }
    const SlotId slot = next_;
    if (taken_[static_cast<std::size_t>(round_)] >= 0) ++next_;
    return slot;
  }

 private:
  std::span<const int> taken_;
  int round_ = -1;
  SlotId next_ = 0;
};

struct Below {
  std::vector<int> taken;
  SlotsOfRank slots;
};

}  // namespace

Schedule circulant(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  Builder b(shape, rank, 16);
  if (ranks == 1) {
    b.copy(schedule::output(0, shape.count), schedule::input(0, shape.count));
    return std::move(b).take();
  }
  const int segments = pattern::segments_of(shape.count, parameters.values[0]);
  const pattern::Blocks blocks(shape.count, segments);
  const pattern::CirculantBroadcast rounds(ranks, segments);
  const int place = pattern::ring_shift(ranks, rank, -shape.root);
  std::vector<int> own_given, own_taken;
  const std::span<const int> given = rounds.received(place, own_given);
  const std::span<const int> taken = rounds.sent(place, own_taken);
  std::vector<Value> sums(static_cast<std::size_t>(segments));
  for (int i = 0; i < segments; ++i) {
    sums[static_cast<std::size_t>(i)] = {schedule::input(blocks.offset(i), blocks.count(i))};
  }
  const bool combines = std::ranges::any_of(taken, [](int block) { return block >= 0; });
  // The part of the vector that this rank combines.
  std::int64_t begin = shape.count, end = 0;
  for (const int segment : taken) {
    if (segment < 0) continue;
    begin = std::min(begin, blocks.offset(segment));
    end = std::max(end, blocks.offset(segment) + blocks.count(segment));
  }
  const Range base = rank == shape.root ? schedule::output(begin, end - begin)
                     : combines         ? b.scratch(end - begin)
                                        : Range{};
  // The ranks below, by the turn of their skip.
  std::array<Below, pattern::CirculantSkips::kMostSkips> below;
  // Slots: one a message, from the last round on.
  int turn = rounds.turn(rounds.rounds() - 1);
  for (int i = rounds.rounds() - 1; i >= 0; --i, turn = rounds.turn_before(turn)) {
    if (const int segment = given[static_cast<std::size_t>(i)]; segment >= 0) {
      const int peer = pattern::ring_shift(ranks, rank, -rounds.skip_of(turn));
      Below& there = below[static_cast<std::size_t>(turn)];
      if (!there.slots.is_known()) {
        const int peer_place = pattern::ring_shift(ranks, peer, -shape.root);
        there.slots = SlotsOfRank(rounds.sent(peer_place, there.taken));
      }
      const Value& sum = sums[static_cast<std::size_t>(segment)];
      b.send(peer, there.slots.slot_in(i), sum.range, {sum.ready});
    }
    if (const int segment = taken[static_cast<std::size_t>(i)]; segment >= 0) {
      const int above = pattern::ring_shift(ranks, rank, rounds.skip_of(turn));
      const SlotId slot = b.slot(above, blocks.count(segment));
      const OpId arrived = b.wait(slot);
      Value& sum = sums[static_cast<std::size_t>(segment)];
      Range target = base;
      target.offset += blocks.offset(segment) - begin;
      target.count = blocks.count(segment);
      sum = {target, b.reduce(target, sum.range, b.of(slot), {arrived, sum.ready})};
    }
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
