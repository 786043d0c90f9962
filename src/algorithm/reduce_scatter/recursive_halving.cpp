// SPDX-License-Identifier: BSD-3-Clause
// Recursive halving: in each dimension of a hypercube, furthest first, two ranks give each other
// the blocks of the other's half, and combine; so what a rank has left halves, until it is its own
// block. Surplus ranks are folded onto their left neighbour, which gives them their block in the
// end.
//
//   P = 5         fold       dimension 1            dimension 0            release
//   0 = pos 0     0 <- 1     0 <> 3, keeps 0 1 2    0 <> 2, keeps 0 1      0 -> 1: block 1
//   2 = pos 1                2 <> 4, keeps 0 1 2    keeps 2
//   3 = pos 2                keeps 3 4              3 <> 4, keeps 3
//   4 = pos 3     (rank 1 is outside the cube)      keeps 4
//
// Steps: log2 P, or floor(log2 P) + 2 if P is no power of two. Bytes: (P-1) m, or P m if P is no
// power of two.
// The partners are furthest first, so that what a rank keeps is one piece: the operator has to
// commute. Empty blocks are sent too, as signals.
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.4; adjacent ranks are
// folded, see pattern/cube.hpp.
#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/cube.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

namespace {

// The whole vector goes to `partner`; the own block comes back.
Schedule outside(const Shape& shape, int rank, int partner, SlotId partner_slot) {
  Builder b(shape, rank, 3);
  const Range whole = schedule::input(0, schedule::whole_count(shape));
  const OpId sends[] = {b.send(partner, partner_slot, whole)};
  const SlotId slot = b.slot(partner, schedule::block(shape, rank).count);
  finish(b, {b.of(slot), b.wait(slot)}, sends);
  return std::move(b).take();
}

// A part of the vector, where `from` says which element its range begins with.
Range part(const Range& range, std::int64_t from, const schedule::Block& wanted) {
  return first_of(behind(range, wanted.offset - from), wanted.count);
}

}  // namespace

Schedule recursive_halving(const Shape& shape, const Parameters&, int rank) {
  const pattern::FoldedCube cube(shape.ranks);
  const int steps = cube.dimensions();
  const int folded = cube.fold_partner(rank);
  if (cube.outside(rank)) return outside(shape, rank, folded, steps);
  // The blocks of the subcube of dimension d around a rank.
  const auto blocks_of = [&](int member, int d) {
    const auto group = cube.subcube(cube.position(member), d);
    return schedule::neighbouring_blocks(shape, group.first, group.count);
  };
  Builder b(shape, rank, 3 * steps + 4);
  // Slots: one a dimension, then that of the folded rank.
  for (int d = 0; d < steps; ++d) b.slot(cube.partner(rank, d), blocks_of(rank, d).count);

  Value sum{schedule::input(0, schedule::whole_count(shape))};
  std::int64_t begin = 0;  // the element of the vector with which it begins
  if (folded >= 0) {
    const Range whole = b.scratch(sum.range.count);
    sum = combine_slots(b, sum, whole, b.slot(folded, sum.range.count), 1);
  }
  std::vector<OpId> sends;
  for (int d = steps - 1; d >= 0; --d) {
    const int partner = cube.partner(rank, d);
    const schedule::Block kept = blocks_of(rank, d);
    sends.push_back(b.send(partner, d, part(sum.range, begin, blocks_of(partner, d)), {sum.ready}));
    const Value mine{part(sum.range, begin, kept), sum.ready};
    const Value theirs{b.of(d), b.wait(d)};
    const Value left = cube.is_upper(rank, d) ? theirs : mine;
    const Value right = cube.is_upper(rank, d) ? mine : theirs;
    if (d == 0 && folded < 0) {
      finish(b, shape, rank, left, right, sends);
      return std::move(b).take();
    }
    const Range target =
        sum.range.memory == schedule::Memory::scratch ? mine.range : b.scratch(kept.count);
    sum = {target, b.reduce(target, left.range, right.range, {left.ready, right.ready})};
    begin = kept.offset;
  }
  if (folded >= 0) {
    b.send(folded, 0, part(sum.range, begin, schedule::block(shape, folded)), {sum.ready});
  }
  finish(b, {part(sum.range, begin, schedule::block(shape, rank)), sum.ready}, sends);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
