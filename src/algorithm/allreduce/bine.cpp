// SPDX-License-Identifier: BSD-3-Clause
// Bine allreduce: reduce_scatter_allgather with the partners of a Bine butterfly, which are 1, 1,
// 3, 5, 11, ... places away where those of a hypercube are 1, 2, 4, 8, 16. Bytes so go less
// far on a ring or torus, where this is Swing, and fewer leave a group of ranks that begins at any
// rank. Groups of a power of two that begin at multiples of it are left less often by a hypercube.
//
//   P = 8     step 0, half        step 1, quarter     step 2, eighth
//   pairs     01 23 45 67         12 34 56 70         03 25 47 61
//
// Steps: 2 log2 P, or 2 floor(log2 P) + 2 if P is no power of two.
// Bytes: 2 n (1 - 1/M), M the largest power of two <= P, and n more for the folding.
// Partners are not in the order of ranks: the operator has to commute. One rank finishes each
// element, so all ranks get the same bits.
// Source: De Sensi et al., "Bine Trees", SC 2025; De Sensi et al., "Swing", NSDI 2024.
#include "algorithm/pattern/bine.hpp"
#include "algorithm/allreduce/halving.hpp"

namespace unisono::algorithm::allreduce {

Schedule bine(const Shape& shape, const Parameters&, int rank) {
  return halving::build(shape, pattern::BineCube(shape.ranks), rank);
}

}  // namespace unisono::algorithm::allreduce
