// SPDX-License-Identifier: BSD-3-Clause
// Guidelines: what has to hold between the times of one library on one machine, whatever they are
// (Träff, Gropp and Thakur, "Self-consistent MPI performance requirements"): a collective is
// not slower than others that would do the same, and neither twice the vector nor one rank more
// makes a cliff. The table is comparison.cpp's; comparisons() says what to measure for it. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/options.hpp"

namespace unisono::tools::bench {

struct Act {
  schedule::Collective collective = schedule::Collective::barrier;
  std::int64_t bytes = 0;  // as in Options::sizes

  bool operator==(const Act&) const = default;
};

// Acts that are called one after another by the first `ranks` ranks of the job.
struct Side {
  std::vector<Act> acts;
  int ranks = 1;

  bool operator==(const Side&) const = default;
};

// The left side may take `limit` times as long as the right one.
struct Comparison {
  std::string text;
  Side left, right;
  double limit = 1;
};

// Those of the guidelines whose left side is one of the options' collectives, at their sizes; what
// depends on it is the same on all ranks. One that needs a reduction is left out where the operator
// is not defined on the type.
std::vector<Comparison> comparisons(const Options& options, int ranks);

}  // namespace unisono::tools::bench
