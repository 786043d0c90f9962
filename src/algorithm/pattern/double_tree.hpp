// SPDX-License-Identifier: BSD-3-Clause
// Two binary trees over the ranks other than the root, such that nobody is an inner node of both
// (Sanders, Speck and Träff 2009): half of a vector goes down each, and everybody sends as much as
// it receives. The first tree has the odd numbers as its leaves, number i being the i-th rank after
// the root; the second is the same tree with the numbers mirrored, or shifted by one where that is
// what swaps odd and even. The root feeds the top of both. Pure values; any thread.
#pragma once

#include <bit>
#include <cstdint>

#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::pattern {

// -1 where there is none. The root of the broadcast has one child, the top of the tree.
struct BinaryNode {
  int parent = -1;
  int left = -1, right = -1;
};

class DoubleTree {
 public:
  // ranks >= 2, 0 <= root < ranks.
  DoubleTree(int ranks, int root) : ranks_(ranks), root_(root) {}

  // `rank` in tree 0 or 1.
  BinaryNode node(int tree, int rank) const {
    const std::uint32_t others = static_cast<std::uint32_t>(ranks_ - 1);
    if (rank == root_) return {-1, rank_of(tree, std::bit_floor(others)), -1};
    const std::uint32_t number = number_of(tree, rank);
    const std::uint32_t low = number & (~number + 1);  // 1 at a leaf, larger further up
    std::uint32_t parent = (number ^ low) | (low << 1);
    if (parent > others) parent = number ^ low;
    BinaryNode node;
    node.parent = parent == 0 ? root_ : rank_of(tree, parent);
    if (low > 1) node.left = rank_of(tree, number - low / 2);
    // A truncated right subtree has its top at the highest number that exists.
    for (std::uint32_t step = low / 2; step > 0 && node.right < 0; step /= 2) {
      if (step <= others - number) node.right = rank_of(tree, number + step);
    }
    return node;
  }

 private:
  std::uint32_t number_of(int tree, int rank) const {
    const int distance = ring_shift(ranks_, rank, -root_);
    if (tree == 0) return static_cast<std::uint32_t>(distance);
    const bool mirrors = ranks_ % 2 == 1;
    const int number = mirrors ? ranks_ - distance : distance % (ranks_ - 1) + 1;
    return static_cast<std::uint32_t>(number);
  }
  int rank_of(int tree, std::uint32_t number) const {
    int distance = static_cast<int>(number);
    if (tree == 1 && ranks_ % 2 == 1) {
      distance = ranks_ - distance;
    } else if (tree == 1) {
      distance = distance == 1 ? ranks_ - 1 : distance - 1;
    }
    return ring_shift(ranks_, root_, distance);
  }

  int ranks_, root_;
};

}  // namespace unisono::algorithm::pattern
