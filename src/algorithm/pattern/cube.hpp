// SPDX-License-Identifier: BSD-3-Clause
// Pairwise exchange for any number of ranks: a hypercube over the largest power of two, onto which
// the surplus ranks are folded. Kini (2003, 4.1.1) and Kumar and Kalé (2004, 3.2) fold rank M + i
// onto rank i; here the first ranks are folded in adjacent pairs, 2i+1 onto 2i, so that every
// subcube stands for consecutive ranks: reductions keep the order of ranks and gathered blocks are
// one piece. Ranks inside the cube have a position in it. Pure values; any thread.
#pragma once

#include <algorithm>
#include <bit>

namespace unisono::algorithm::pattern {

class FoldedCube {
 public:
  // ranks >= 1.
  explicit FoldedCube(int ranks)
      : size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        surplus_(ranks - size_) {}

  int size() const { return size_; }  // a power of two
  int dimensions() const { return std::countr_zero(static_cast<unsigned>(size_)); }

  // Whether the rank stays outside the cube and is played by its fold partner.
  bool outside(int rank) const { return rank < 2 * surplus_ && rank % 2 == 1; }
  // The other rank of the folded pair; -1 for a rank that is in none.
  int fold_partner(int rank) const { return rank < 2 * surplus_ ? rank ^ 1 : -1; }

  // For ranks inside the cube.
  int position(int rank) const { return rank < 2 * surplus_ ? rank / 2 : rank - surplus_; }
  // The inverse. The ranks of positions [a, b) and their folded ones are [rank_at(a), rank_at(b)).
  int rank_at(int position) const { return position + std::min(position, surplus_); }
  // The partner of a rank inside the cube in dimension d, and whether the rank is the upper of the
  // two.
  int partner(int rank, int d) const { return rank_at(position(rank) ^ (1 << d)); }
  bool is_upper(int rank, int d) const { return ((position(rank) >> d) & 1) != 0; }

  // The ranks represented by the subcube of dimension d around a position.
  struct RankRange {
    int first = 0, count = 0;
  };
  RankRange subcube(int position, int d) const {
    const int begin = (position >> d) << d;
    const int first = rank_at(begin);
    return {first, rank_at(begin + (1 << d)) - first};
  }

 private:
  int size_, surplus_;
};

}  // namespace unisono::algorithm::pattern
