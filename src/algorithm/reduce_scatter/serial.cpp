// SPDX-License-Identifier: BSD-3-Clause
// Serial reduce-scatter: everyone sends its whole vector to rank 0, which combines them in the
// order of ranks, and sends each rank its block of the result. Rank 0 alone applies the operator,
// so no result depends on another processor's arithmetic.
//
//   P = 3:   1 2 -> 0    0: s = (x0 op x1) op x2    0 -> 1 2, block 1 and block 2 of s
//
// The row exact-serial sums in one step, so that the result is rounded once.
// Steps: 2. Bytes: P m.
// The vectors are combined in scratch memory: in place, the output lies where the input begins.
// Empty blocks are sent too, as signals.
// Source: the definition of MPI_Reduce_scatter, MPI 3.1, section 5.10.2; section 4.5 of Petrini et
// al., HotI 2003 (one process computes the result, then distributes it).
#include "algorithm/algorithm.hpp"
#include "algorithm/exact.hpp"

namespace unisono::algorithm::reduce_scatter {

namespace {

Schedule by_rank_zero(const Shape& shape, int rank, bool is_exact) {
  const Range whole = schedule::input(0, schedule::whole_count(shape));
  const schedule::Block own = schedule::block(shape, rank);
  const int others = shape.ranks - 1;
  Builder b(shape, rank, 3 * shape.ranks);
  if (rank != 0) {
    const SlotId slot = b.slot(0, own.count);
    give_and_take(b, 0, slot_of(rank, 0), {whole}, slot);
    return std::move(b).take();
  }
  for (int source = 1; source < shape.ranks; ++source) b.slot(source, whole.count);
  Value sum{whole};
  if (others > 0 || is_exact) {
    const Range scratch = b.scratch(whole.count);
    sum = is_exact
              ? Value{scratch, exact::sum_up_to(b, scratch, whole, rank, others,
                                                [](int source) { return slot_of(source, 0); }, {})}
              : combine_slots(b, sum, scratch, 0, others);
  }
  const auto block_of_sum = [&](int peer) {
    const schedule::Block block = schedule::block(shape, peer);
    Range part = sum.range;
    part.offset += block.offset;
    part.count = block.count;
    return part;
  };
  for (int peer = 1; peer < shape.ranks; ++peer) b.send(peer, 0, block_of_sum(peer), {sum.ready});
  b.copy(schedule::output(0, own.count), block_of_sum(0), {sum.ready});
  return std::move(b).take();
}

}  // namespace

Schedule serial(const Shape& shape, const Parameters&, int rank) {
  return by_rank_zero(shape, rank, false);
}

Schedule exact_serial(const Shape& shape, const Parameters&, int rank) {
  return by_rank_zero(shape, rank, true);
}

}  // namespace unisono::algorithm::reduce_scatter
