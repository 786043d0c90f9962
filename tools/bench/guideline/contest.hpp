// SPDX-License-Identifier: BSD-3-Clause
// Contest: measures the two sides of a comparison against each other, in blocks of calls by turns,
// so that a busy moment of the machine meets both. A call of a side is all of its acts, one after
// another, after a barrier; its time is the slowest rank's. Each act has buffers of its own, and
// every result is verified. All ranks make the same calls and get the same results. One thread.
#pragma once

#include <unisono/unisono.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/result.hpp"
#include "bench/guideline/comparison.hpp"
#include "bench/measure/pattern.hpp"
#include "bench/measure/place.hpp"
#include "bench/options.hpp"
#include "statistics.hpp"

namespace unisono::tools::bench {

// Times in microseconds.
struct Contest {
  Summary left, right;
  std::int64_t wrong = 0;  // elements

  // The clock does not see less than a nanosecond.
  double ratio() const { return std::max(left.median, 1e-3) / std::max(right.median, 1e-3); }
};

class Arena {
 public:
  // Both outlive it.
  Arena(const Place& place, const Options& options) : place_(place), options_(options) {}
  base::Result<Contest> hold(const Comparison& comparison);
  // Frees the communicators; to be called before the job ends.
  base::Status close();

 private:
  // The first ranks of the job.
  struct Team {
    unisono_comm_t comm = nullptr;  // null at a rank that is not among them
    Pattern pattern;
  };
  class Player;

  base::Result<Team*> team(int ranks);

  const Place& place_;
  const Options& options_;
  std::map<int, Team> teams_;  // by their number
};

}  // namespace unisono::tools::bench
