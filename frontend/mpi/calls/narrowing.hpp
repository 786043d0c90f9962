// SPDX-License-Identifier: BSD-3-Clause
// Narrowing: turns the arguments of a call with large counts into those of the same call with ints.
// Programs take the drop-in's functions with large counts for those of their MPI, which may be
// older than MPI 4 and have none. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/functions.hpp"
#include "selection.hpp"

namespace unisono::mpi {

class Narrowing {
 public:
  // The call's lists of counts and displacements have an entry for each rank. The first `ignored`
  // of them mean nothing at this rank, and may lead anywhere.
  Narrowing(int entries, int ignored) : entries_(entries), ignored_(ignored) {}

  template <class Argument>
  Argument operator()(Argument other) {
    return other;
  }
  int operator()(std::int64_t count);
  // The MPI may read the result until the call ends, which nobody tells. So it is never freed.
  // Equal lists are kept once.
  const int* operator()(const std::int64_t* list);

  // Whether all numbers so far are ints.
  bool fits() const { return fits_; }

 protected:
  int entries_;

 private:
  int ignored_;
  bool fits_ = true;
};

// For a collective of neighbours. Its lists before the receive buffer have an entry for each
// target, the others one for each source.
class NeighbourNarrowing : public Narrowing {
 public:
  NeighbourNarrowing(int targets, int sources) : Narrowing(targets, 0), sources_(sources) {}

  using Narrowing::operator();
  void* operator()(void* receive) {
    entries_ = sources_;
    return receive;
  }

 private:
  int sources_;
};

NeighbourNarrowing neighbour_narrowing_of(Handle comm);

// For a call with this first argument and root (any number if it has none).
Narrowing narrowing_of(Collective collective, const void* first, int root, Handle comm);

}  // namespace unisono::mpi
