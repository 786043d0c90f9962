// SPDX-License-Identifier: BSD-3-Clause
// Bine butterflies and trees (De Sensi et al. 2025): the partner of a position in step d is
// 1, 1, 3, 5, 11, ... places away, 1/3 of -(-2)^(d+1) + 1: upwards from even positions and
// downwards from odd ones, cyclically. All partners so are closer than the 1, 2, 4, 8, 16, ... of a
// hypercube. In one dimension these are the partners of Swing (De Sensi et al. 2024). Surplus ranks
// are folded onto their left neighbour, as in pattern/cube.hpp. Pure values; any thread.
#pragma once

#include "algorithm/pattern/cube.hpp"

namespace unisono::algorithm::pattern {

class BineCube {
 public:
  // ranks >= 1.
  explicit BineCube(int ranks) : cube_(ranks) {}

  int size() const { return cube_.size(); }
  int dimensions() const { return cube_.dimensions(); }
  bool outside(int rank) const { return cube_.outside(rank); }
  int fold_partner(int rank) const { return cube_.fold_partner(rank); }

  // For ranks inside the cube: the partner in step d.
  int partner(int rank, int d) const {
    const int position = cube_.position(rank);
    const int distance = distance_of(d);
    const int other = position % 2 == 0 ? position + distance : position - distance;
    return cube_.rank_at(other & (size() - 1));
  }
  // Whether the rank is the upper of the two. The partners of all later steps are so as well.
  bool is_upper(int rank, int d) const {
    if (d + 1 == dimensions()) return cube_.position(rank) % 2 != 0;
    return ((group(rank, d + 1) >> (d + 1)) & 1) != 0;
  }
  // At first, position 0 is alone. Then those that have joined bring in their partners, in falling
  // order of steps. This is the step in which a rank joins; dimensions() for position 0.
  int joins(int rank) const {
    int d = dimensions();
    if (cube_.position(rank) == 0) return d;
    do {
      --d;
    } while ((group(rank, d) & ((2 << d) - 1)) != 0);
    return d;
  }

 private:
  static int distance_of(int d) { return (1 - (d % 2 == 0 ? -2 : 2) * (1 << d)) / 3; }
  // Positions that meet in steps d, d + 1, ... have this in common, modulo 2^(d+1).
  int group(int rank, int d) const {
    const int position = cube_.position(rank);
    return position % 2 == 0 ? position : position - distance_of(d);
  }

  FoldedCube cube_;
};

}  // namespace unisono::algorithm::pattern
