// SPDX-License-Identifier: BSD-3-Clause
// f-nomial trees (Moody et al., SC 2003, section 5.2 and appendix A): in phase k, of stride f^k,
// each rank still in play whose digit k (base f) is 0 takes up to f-1 children at rank + i *
// stride; every other one belongs to its parent and is done. A subtree is a range of consecutive
// ranks, so taking children in the order of their numbers keeps the order of ranks. Another root
// shifts the ranks cyclically. Degree 2 is the binomial tree, degree >= ranks the flat one. Pure
// values; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace unisono::algorithm::pattern {

// A rank's place in a tree. Children are numbered from 0, phase by phase.
struct TreeNode {
  int parent = -1;       // -1 at the root
  int child_number = 0;  // which child of its parent; 0 at the root
  int children = 0;
};

class FnomialTree {
 public:
  // ranks >= 1, degree >= 2, 0 <= root < ranks.
  FnomialTree(int ranks, int degree, int root = 0) : ranks_(ranks), degree_(degree), root_(root) {}

  TreeNode node(int rank) const {
    TreeNode node;
    int rest = shifted(rank);                 // this rank's digits from the current phase on
    int beyond = ranks_ - 1 - shifted(rank);  // how many strides fit between it and the last rank
    for (int phase = 0; rest > 0 || beyond > 0; ++phase) {
      const int digit = rest % degree_;
      rest /= degree_;
      if (digit != 0) {
        node.parent = real(static_cast<int>(rest * stride_after(phase)));
        node.child_number = phase * (degree_ - 1) + digit - 1;
        return node;
      }
      node.children += std::min(degree_ - 1, beyond);
      beyond /= degree_;
    }
    return node;
  }

  // The rank of child `number` of `parent`, 0 <= number < node(parent).children.
  int child(int parent, int number) const {
    std::int64_t stride = 1;
    for (; number >= degree_ - 1; number -= degree_ - 1) stride *= degree_;
    return real(static_cast<int>(shifted(parent) + (number + 1) * stride));
  }

  // How many ranks, cyclically from `rank` on, its subtree holds, itself included.
  int subtree(int rank) const {
    int rest = shifted(rank);
    if (rest == 0) return ranks_;
    const int beyond = ranks_ - rest;  // ranks from this one to the last
    std::int64_t stride = 1;
    for (; rest % degree_ == 0; rest /= degree_) stride *= degree_;
    return static_cast<int>(std::min<std::int64_t>(stride, beyond));
  }

  // How many messages `rank` receives in a phase.
  int receives(int rank, int phase) const {
    const int before = phase * (degree_ - 1);
    return std::clamp(node(rank).children - before, 0, degree_ - 1);
  }

  // ceil(log_f P).
  int phases() const {
    int phases = 0;
    for (int beyond = ranks_ - 1; beyond > 0; beyond /= degree_) ++phases;
    return phases;
  }

 private:
  int shifted(int rank) const { return rank >= root_ ? rank - root_ : rank - root_ + ranks_; }
  int real(int shifted) const {
    return shifted < ranks_ - root_ ? shifted + root_ : shifted - (ranks_ - root_);
  }
  std::int64_t stride_after(int phase) const {
    std::int64_t stride = degree_;
    for (; phase > 0; --phase) stride *= degree_;
    return stride;
  }

  int ranks_, degree_, root_;
};

}  // namespace unisono::algorithm::pattern
