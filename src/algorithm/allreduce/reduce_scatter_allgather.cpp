// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, then allgather (Rabenseifner). In each dimension of a hypercube, nearest first,
// two ranks give each other the half of their piece that the other keeps, and combine: after log2 P
// steps everyone owns 1/P of the result. The same dimensions backwards collect the pieces. Surplus
// ranks are folded onto their left neighbour. Few steps and little traffic: for long vectors.
//
//   P = 5         fold       dimension 0       dimension 1       dimension 1, 0      release
//   0 = pos 0     0 <- 1     keeps [0, 1/2)    keeps [0, 1/4)    [0, 1/2), all       0 -> 1
//   2 = pos 1                keeps [1/2, 1)    keeps [1/2, 3/4)  [1/2, 1), all
//   3 = pos 2                keeps [0, 1/2)    keeps [1/4, 1/2)  [0, 1/2), all
//   4 = pos 3                keeps [1/2, 1)    keeps [3/4, 1)    [1/2, 1), all
//
// Steps: 2 log2 P, or 2 floor(log2 P) + 2 if P is no power of two.
// Bytes: 2 n (1 - 1/M), M the largest power of two <= P, and n more for the folding.
// Nearest first, the lower part on the left: the order of ranks is kept. One rank finishes each
// element, so all ranks get the same bits. Empty pieces are sent too, as signals.
// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
#include "algorithm/allreduce/halving.hpp"
#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::allreduce {

Schedule reduce_scatter_allgather(const Shape& shape, const Parameters&, int rank) {
  return halving::build(shape, pattern::FoldedCube(shape.ranks), rank);
}

}  // namespace unisono::algorithm::allreduce
