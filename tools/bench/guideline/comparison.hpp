// SPDX-License-Identifier: BSD-3-Clause
// Guidelines: relations that must hold between the times of one library on one machine, whatever
// the times are (Träff, Gropp and Thakur, "Self-consistent MPI performance requirements"). A
// collective is not slower than others that would do the same. Neither twice the vector nor one
// more rank makes a jump in time. The table is in comparison.cpp; comparisons() lists the
// measurements for it. Pure; any thread.
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

// The guidelines whose left side is one of the options' collectives, at their sizes. The result is
// the same on all ranks. A guideline that needs a reduction is left out if the operator is not
// defined on the type.
std::vector<Comparison> comparisons(const Options& options, int ranks);

}  // namespace unisono::tools::bench
