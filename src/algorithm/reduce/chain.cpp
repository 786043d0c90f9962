// SPDX-License-Identifier: BSD-3-Clause
// Chain: segments of the vector travel from both ends of the ranks towards the root, and each rank
// adds its own on the way. Once the chain is full, every rank receives, combines and sends a
// segment at once: the least bytes a rank, for very long vectors.
//
//   P = 5, root 2:   0 -> 1 -> 2 <- 3 <- 4     ((x0 op x1) op x2) op (x3 op x4)
//
// The order of ranks is kept whichever the root is.
// Steps: P-1 at most, and a segment's time for each further segment. Bytes: n.
// Source: Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007 (the linear array).
#include "algorithm/reduce/pipeline.hpp"

namespace unisono::algorithm::reduce {

Schedule chain(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::InOrderChain tree(shape.ranks, shape.root);
  return Pipeline(shape, tree, 0, parameters.values[0], rank).build();
}

}  // namespace unisono::algorithm::reduce
