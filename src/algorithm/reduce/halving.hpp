// SPDX-License-Identifier: BSD-3-Clause
// Recursive halving, the first part of two reductions: in each dimension two positions give each
// other the half of their piece of the vector that the other keeps, and combine. Nearest first, the
// lower ranks' part on the left: after s dimensions the leaders of 2^s neighbouring positions hold
// a piece each, combined in the order of ranks. A rank that leads no position gives the halves of
// its vector to the leaders of the first dimension in its first step. Used by one build function
// and dropped.
#pragma once

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/paired.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::reduce {

// Where a rank combines: memory for the piece of the vector that begins at `origin`.
struct Sums {
  Range memory;
  std::int64_t origin = 0;

  Range at(const pattern::HalvingRange& piece) const {
    Range range = memory;
    range.offset += piece.offset - origin;
    range.count = piece.count;
    return range;
  }
};

class Halving {
 public:
  // steps >= 1; 2^steps divides the number of positions. Rank r of `paired` is rank r + shift of
  // the shape, cyclically; all ranks here are those of `paired`.
  Halving(const Shape& shape, const pattern::PairedRanks& paired, int steps, int shift)
      : shape_(shape), paired_(paired), steps_(steps), shift_(shift) {}

  int real(int rank) const { return pattern::ring_shift(shape_.ranks, rank, shift_); }

  // The piece that a position holds after the first `steps` dimensions.
  pattern::HalvingRange piece(int position, int steps) const {
    pattern::HalvingRange piece{0, shape_.count};
    for (int d = 0; d < steps; ++d) {
      piece = (position >> d & 1) != 0 ? piece.upper_half() : piece.lower_half();
    }
    return piece;
  }

  // The number of slots that the halving uses at a leader; the caller's slots follow.
  SlotId slots(int position) const { return group(position).count - 1 + steps_ - 1; }

  // At a rank that leads nothing.
  void give_away(Builder& b, int rank) const {
    const int position = paired_.position(rank);
    for (const int to : {position & ~1, position | 1}) {
      const int leader = paired_.leader(to);
      b.send(real(leader), first_slot(leader, rank), input().at(piece(to, 1)));
    }
  }

  // At the leader of `position`: where it may combine, unless it is the output.
  Sums scratch_sums(Builder& b, int position) const {
    const pattern::HalvingRange kept = piece(position, 1);
    return {b.scratch(kept.count), kept.offset};
  }

  // At the leader of `position`: its piece in `sums`, after all sends are done.
  Value run(Builder& b, int position, const Sums& sums) const {
    Value sum = first_dimension(b, position, sums);
    const SlotId first = group(position).count - 2;
    for (int d = 1; d < steps_; ++d) {
      const int partner = position ^ (1 << d);
      const SlotId partner_slot = group(partner).count - 2 + d;
      const OpId sent = b.send(real(paired_.leader(partner)), partner_slot,
                               sums.at(piece(partner, d + 1)), {sum.ready});
      const OpId arrived = b.wait(first + d);
      const Range kept = sums.at(piece(position, d + 1));
      const bool upper = (position >> d & 1) != 0;
      const Range left = upper ? b.of(first + d) : kept;
      const Range right = upper ? kept : b.of(first + d);
      sum = {kept, b.reduce(kept, left, right, {arrived, sent})};
    }
    return sum;
  }

 private:
  // The ranks that meet in the first dimension: two leaders, and up to two others.
  struct Group {
    int first = 0, count = 0;
  };
  Group group(int position) const {
    const int first = paired_.first(position & ~1);
    return {first, paired_.first((position | 1) + 1) - first};
  }

  Sums input() const { return {schedule::input(0, shape_.count), 0}; }

  // Slots of the first dimension: the others of the group in the order of ranks.
  SlotId first_slot(int leader, int source) const {
    const int number = source - group(paired_.position(leader)).first;
    return source < leader ? number : number - 1;
  }

  Value first_dimension(Builder& b, int position, const Sums& sums) const {
    const int rank = paired_.leader(position);
    const Group met = group(position);
    const pattern::HalvingRange kept = piece(position, 1);
    for (int source = met.first; source < met.first + met.count; ++source) {
      if (source != rank) b.slot(real(source), kept.count);
    }
    for (int d = 1; d < steps_; ++d) {
      b.slot(real(paired_.leader(position ^ (1 << d))), piece(position, d + 1).count);
    }
    const int partner = paired_.leader(position ^ 1);
    const OpId sent =
        b.send(real(partner), first_slot(partner, rank), input().at(piece(position ^ 1, 1)));
    const int lower = rank - met.first;
    const Range scratch = lower > 1 ? b.scratch(kept.count) : Range{};
    return combine_around(b, {input().at(kept), sent}, sums.at(kept), scratch, 0, lower,
                          met.count - 1 - lower);
  }

  const Shape& shape_;
  const pattern::PairedRanks& paired_;
  int steps_, shift_;
};

}  // namespace unisono::algorithm::reduce
