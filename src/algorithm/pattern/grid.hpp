// SPDX-License-Identifier: BSD-3-Clause
// A grid of base^d positions, onto which any number of ranks is folded: the base-ary relative of
// the folded cube. A position stands for up to `base` consecutive ranks, of which the first leads.
// In dimension d, the leaders whose positions differ in digit d only meet; as each stands for
// consecutive ranks, taking them in the order of the digit keeps the order of ranks. Pure values;
// any thread.
#pragma once

#include "algorithm/pattern/blocks.hpp"

namespace unisono::algorithm::pattern {

class FoldedGrid {
 public:
  // ranks >= 1, base >= 2.
  FoldedGrid(int ranks, int base) : base_(base), ranks_of_(ranks, 1) {
    while (size_ <= ranks / base) {
      size_ *= base;
      ++dimensions_;
    }
    ranks_of_ = Blocks(ranks, size_);
    longer_ = ranks % size_;
    length_ = ranks / size_;
  }

  int size() const { return size_; }
  int dimensions() const { return dimensions_; }

  int position(int rank) const {
    const int in_longer = longer_ * (length_ + 1);
    if (rank < in_longer) return rank / (length_ + 1);
    return longer_ + (rank - in_longer) / length_;
  }
  int leader(int position) const { return static_cast<int>(ranks_of_.offset(position)); }
  bool leads(int rank) const { return leader(position(rank)) == rank; }
  // The ranks leader(position) .. leader(position) + folded(position) belong to the position.
  int folded(int position) const { return static_cast<int>(ranks_of_.count(position)) - 1; }

  // The positions that differ from one in digit d at most: that with digit i is at(i).
  struct Line {
    int first = 0, stride = 1;
    int digit = 0;  // of this rank

    int at(int i) const { return first + i * stride; }
  };
  Line line(int position, int dimension) const {
    Line line;
    for (int d = 0; d < dimension; ++d) line.stride *= base_;
    line.digit = position / line.stride % base_;
    line.first = position - line.digit * line.stride;
    return line;
  }

 private:
  int base_, size_ = 1, dimensions_ = 0;
  int longer_ = 0, length_ = 1;
  Blocks ranks_of_;
};

}  // namespace unisono::algorithm::pattern
