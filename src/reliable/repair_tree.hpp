// SPDX-License-Identifier: BSD-3-Clause
// Who asks whom for what a multicast has lost: a k-ary tree over the ranks with the origin at its
// root. Each rank has one parent to ask and at most k children to answer, so that neither requests
// nor acknowledgements of a large group meet at one rank. Pure functions; any thread.
#pragma once

#include <algorithm>

namespace unisono::reliable {

struct RepairTree {
  int ranks = 1;
  int arity = 4;

  // Not for the origin itself.
  int parent(int origin, int rank) const {
    return absolute(origin, (relative(origin, rank) - 1) / arity);
  }
  int children(int origin, int rank) const {
    const int first = arity * relative(origin, rank) + 1;
    return std::clamp(ranks - first, 0, arity);
  }
  int child(int origin, int rank, int number) const {
    return absolute(origin, arity * relative(origin, rank) + 1 + number);
  }
  // Which child of its parent the rank is.
  int number_of(int origin, int rank) const { return (relative(origin, rank) - 1) % arity; }

 private:
  int relative(int origin, int rank) const { return (rank - origin + ranks) % ranks; }
  int absolute(int origin, int place) const { return (place + origin) % ranks; }
};

}  // namespace unisono::reliable
