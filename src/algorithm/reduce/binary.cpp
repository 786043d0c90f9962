// SPDX-License-Identifier: BSD-3-Clause
// In-order binary tree: a rank combines the vector of the ranks of its left subtree, its own, and
// that of its right subtree, segment by segment. Few steps as in an f-nomial tree, but no rank
// receives more than twice the vector, so that segments overlap: for long vectors on many ranks.
//
//   P = 5             2           ((x0 op x1) op x2) op (x3 op x4)
//                   /   \         from left to right the ranks in order
//                  1     4
//                 /     /
//                0     3
//
// The ranks are shifted cyclically so that the root is on top, and with them the order of
// combination. Where that matters (shape.ordered) the top sends the result on to the root.
// Steps: floor(log2 P); one more if ordered and the root is not P/2. Bytes: n.
// Source: Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel and Dongarra, Cluster Computing 10(2),
// 2007 (the in-order binary tree).
#include "algorithm/reduce/pipeline.hpp"

namespace unisono::algorithm::reduce {

Schedule binary(const Shape& shape, const Parameters& parameters, int rank) {
  const pattern::InOrderBinaryTree tree(shape.ranks);
  const int shift = shape.ordered ? 0 : shape.root - tree.top();
  return Pipeline(shape, tree, shift, parameters.values[0], rank).build();
}

}  // namespace unisono::algorithm::reduce
