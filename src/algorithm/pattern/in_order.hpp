// SPDX-License-Identifier: BSD-3-Clause
// Trees with a left and a right child, in which everything in a left subtree comes before its top
// and everything in a right one after it: combining left, own, right keeps the order of ranks. The
// binary one halves the ranks again and again; the chain leads from both ends to its top. Pure
// values; any thread.
#pragma once

namespace unisono::algorithm::pattern {

// -1 where there is none.
struct InOrderNode {
  int parent = -1;
  int left = -1, right = -1;
};

// The top is the middle, and so on for both halves; the left one is the longer. floor(log2 ranks)
// levels below the top.
class InOrderBinaryTree {
 public:
  // ranks >= 1.
  explicit InOrderBinaryTree(int ranks) : ranks_(ranks) {}

  int top() const { return ranks_ / 2; }

  InOrderNode node(int rank) const {
    InOrderNode node;
    int begin = 0;
    int end = ranks_;
    for (int middle = top(); middle != rank; middle = begin + (end - begin) / 2) {
      node.parent = middle;
      if (rank < middle) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    if (begin < rank) node.left = begin + (rank - begin) / 2;
    if (rank + 1 < end) node.right = rank + 1 + (end - rank - 1) / 2;
    return node;
  }

 private:
  int ranks_;
};

class InOrderChain {
 public:
  // ranks >= 1, 0 <= top < ranks.
  InOrderChain(int ranks, int top) : ranks_(ranks), top_(top) {}

  int top() const { return top_; }

  InOrderNode node(int rank) const {
    InOrderNode node;
    if (rank != top_) node.parent = rank < top_ ? rank + 1 : rank - 1;
    if (rank <= top_) node.left = rank - 1;  // -1 at the end
    if (rank >= top_ && rank + 1 < ranks_) node.right = rank + 1;
    return node;
  }

 private:
  int ranks_, top_;
};

}  // namespace unisono::algorithm::pattern
