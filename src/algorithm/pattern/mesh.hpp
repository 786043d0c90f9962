// SPDX-License-Identifier: BSD-3-Clause
// The two-dimensional mesh of Kumar and Kalé (2004, section 3.1) for any number of ranks. The rows
// are consecutive ranks in the next larger square; empty rows are left out. Ranks above the holes
// at the end of the last row replace them. If (i, k) is a hole, the block of rank (i, j) of the
// last row for column k goes to (j mod (rows - 1), k). Pure values; any thread.
#pragma once

namespace unisono::algorithm::pattern {

class Mesh {
 public:
  // ranks >= 1.
  explicit Mesh(int ranks) : ranks_(ranks) {
    while (static_cast<long long>(columns_) * columns_ < ranks) ++columns_;
    rows_ = (ranks - 1) / columns_ + 1;
  }

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int row(int rank) const { return rank / columns_; }
  int column(int rank) const { return rank % columns_; }
  int rank_at(int row, int column) const { return row * columns_ + column; }
  // The number of ranks in a row; all rows but the last are full.
  int row_size(int row) const { return row + 1 < rows_ ? columns_ : ranks_ - row * columns_; }

  int column_size(int column) const {
    return rank_at(rows_ - 1, column) < ranks_ ? rows_ : rows_ - 1;
  }

  // The rank to which `rank` gives its block for another column.
  int peer(int rank, int other_column) const {
    const int direct = rank_at(row(rank), other_column);
    return direct < ranks_ ? direct : rank_at(column(rank) % (rows_ - 1), other_column);
  }

  // How many ranks of the last row give their block to `rank` because it replaces a hole of its
  // column; the i-th of them.
  int played(int rank) const {
    const int last = rows_ - 1;
    if (row(rank) == last || rank_at(last, column(rank)) < ranks_) return 0;
    const int from_here = row_size(last) - row(rank);
    return from_here <= 0 ? 0 : (from_here - 1) / last + 1;
  }
  int played_rank(int rank, int i) const {
    const int last = rows_ - 1;
    return rank_at(last, row(rank) + i * last);
  }

 private:
  int ranks_, rows_ = 1, columns_ = 1;
};

}  // namespace unisono::algorithm::pattern
