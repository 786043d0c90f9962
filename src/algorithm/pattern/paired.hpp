// SPDX-License-Identifier: BSD-3-Clause
// Ranks on fewer positions, at most two on one: the first positions stand for two adjacent ranks
// each, as far as there are surplus ranks, the others for one. One rank of each position leads it;
// the other one gives its vector away and is done. Unlike in pattern/cube.hpp, the number of
// positions need not be a power of two, and a certain rank can be made to lead. Pure values; any
// thread.
#pragma once

#include <algorithm>

namespace unisono::algorithm::pattern {

class PairedRanks {
 public:
  // positions <= ranks <= 2 * positions; `leader` leads its position.
  PairedRanks(int ranks, int positions, int leader)
      : positions_(positions), surplus_(ranks - positions), leader_(leader) {}

  int positions() const { return positions_; }
  int position(int rank) const { return rank < 2 * surplus_ ? rank / 2 : rank - surplus_; }
  // The ranks of positions [a, b) are [first(a), first(b)).
  int first(int position) const { return position + std::min(position, surplus_); }
  int leader(int position) const {
    const bool wanted = position < surplus_ && leader_ / 2 == position;
    return wanted ? leader_ : first(position);
  }
  bool leads(int rank) const { return leader(position(rank)) == rank; }

 private:
  int positions_, surplus_, leader_;
};

}  // namespace unisono::algorithm::pattern
