// SPDX-License-Identifier: BSD-3-Clause
// Circulant allreduce: the reduce-scatter of reduce_scatter/circulant over P blocks of the vector,
// then the same rounds backwards, in which a rank sends the finished blocks from its own one on.
// Any P takes the fewest bytes and twice the fewest steps: nothing is folded.
//
//   P = 5         reduce-scatter, skips 3 2 1       allgather, skips 1 2 3
//   rank 0        3 4 -> 3;  2 -> 2;  1 -> 1        0 -> 4;  0 -> 3;  0 1 -> 2
//   rank 0 has    0 1 2;     0 1;     0             0 1;     0 1 2;   0 1 2 3 4
//
// Steps: 2 ceil(log2 P). Bytes: 2 n (P-1)/P.
// Parts come from ranks that are no neighbours: the operator has to commute. One rank finishes each
// block, so all ranks get the same bits. Blocks beyond the last rank go in a message of their own.
// Empty blocks are sent too, as signals.
// Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", arXiv
// 2410.14234.
#include "algorithm/algorithm.hpp"
#include "algorithm/circulant_halving.hpp"
#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::allreduce {

namespace {

struct CyclicBlocks {
  pattern::Blocks blocks;
  int ranks;

  schedule::Block neighbours(int first, int count) const {
    const std::int64_t begin = blocks.offset(first);
    return {begin, blocks.offset(first + count) - begin};
  }
  BlockRun operator()(int first, int count) const {
    const int above = std::min(count, ranks - first);
    return {neighbours(first, above), neighbours(0, count - above)};
  }
};

}  // namespace

Schedule circulant(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  Builder b(shape, rank, 24);
  if (ranks == 1) {
    b.copy(schedule::output(0, shape.count), schedule::input(0, shape.count));
    return std::move(b).take();
  }
  const CyclicBlocks run_of{pattern::Blocks(shape.count, ranks), ranks};
  const pattern::CirculantSkips skips(ranks);
  CirculantHalving halving(b, ranks, rank, run_of);
  const auto halves = halving.run();
  const Range own = output(run_of(rank, 1).only_part());
  const OpId finished = b.reduce(own, halves.received.range, halves.own.range,
                                 {halves.received.ready, halves.own.ready});
  // The blocks that a rank gets in round k: one part or two.
  const auto taken_by = [&](int at, int k) {
    return run_of(pattern::ring_shift(ranks, at, skips.at(k)), skips.at(k + 1) - skips.at(k));
  };
  // Slots: those of the reduce-scatter, then those of each round. Only the round whose blocks go
  // beyond the last rank may have two.
  const auto first_slot = [&](int at, int round) {
    int k = 0;
    while (k < round && at + skips.at(k + 1) <= ranks) ++k;
    const bool has_two = k < round && !taken_by(at, k).is_one_part();
    return halving.slots(at) + round + (has_two ? 1 : 0);
  };
  OpId complete = finished;
  for (int k = 0; k < skips.rounds(); ++k) {
    const int to = pattern::ring_shift(ranks, rank, -skips.at(k));
    const int from = pattern::ring_shift(ranks, rank, skips.at(k));
    SlotId slot_there = first_slot(to, k);
    taken_by(to, k).for_each_part(
        [&](const schedule::Block& part) { b.send(to, slot_there++, output(part), {complete}); });
    OpId placed = complete;
    taken_by(rank, k).for_each_part([&](const schedule::Block& part) {
      const SlotId slot = b.slot(from, part.count);
      const OpId arrived = b.wait(slot);
      placed = b.copy(output(part), b.of(slot), {arrived, placed});
      // In place, these read the range overwritten here.
      for (const OpId sent : halves.sends) b.also_after(sent);
    });
    complete = placed;
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
