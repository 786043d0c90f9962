// SPDX-License-Identifier: BSD-3-Clause
// Circulant reduce-scatter: a rank sends the sums of the upper half of the blocks that it has left,
// counted from its own, to the rank that many places above, until its own block is left. The halves
// are rounded, so that any P takes the fewest steps and the fewest bytes: nothing is folded.
//
//   P = 5         round 0, skip 3     round 1, skip 2    round 2, skip 1
//   rank 0        3 4 -> 3            2 -> 2             1 -> 1
//   rank 2        0 1 -> 0            4 -> 4             3 -> 3
//   keeps         3 blocks            2 blocks           its own
//   0 gets        x2 from rank 2      x3 from rank 3     x1 op x4 from rank 4
//
// Steps: ceil(log2 P). Bytes: (P-1) m.
// Parts come from ranks that are no neighbours: the operator has to commute. In the first round,
// blocks beyond the last rank go in a message of their own. Empty blocks are sent too, as signals.
// Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", arXiv
// 2410.14234.
#include "algorithm/algorithm.hpp"
#include "algorithm/circulant_halving.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

Schedule circulant(const Shape& shape, const Parameters&, int rank) {
  Builder b(shape, rank, 16);
  if (shape.ranks == 1) {
    finish(b, {input(schedule::block(shape, rank))}, {});
    return std::move(b).take();
  }
  CirculantHalving halving(b, shape.ranks, rank,
                           [&](int first, int ranks) { return block_run(shape, first, ranks); });
  const auto halves = halving.run();
  finish(b, shape, rank, halves.received, halves.own, halves.sends);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
