// SPDX-License-Identifier: BSD-3-Clause
// A sweep of proofs: algorithms x numbers of ranks x roots x parameters x counts or lengths of
// blocks x order of operands. The proofs run on as many threads as there are usable cores; the
// observer is called from the calling thread only, with the results in the order of `algorithms`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "check/check.hpp"

namespace unisono::tools {

struct Sweep {
  std::vector<const algorithm::Algorithm*> algorithms;
  std::vector<int> ranks;
  // Empty: 0, 1, 2 and, where vectors do not consist of blocks, those around ranks; where they do,
  // blocks of unequal lengths as well.
  std::vector<std::int64_t> counts;
  bool every_root = false;  // otherwise above 16 ranks only some
};

// One set of schedules that could not be built or is not right.
struct SweepFailure {
  std::string shape;  // "fnomial(3), 5 ranks, root 2, count 6"
  std::vector<check::Violation> violations;
};

struct SweepResult {
  const algorithm::Algorithm* algorithm = nullptr;
  std::int64_t sets = 0;  // sets of schedules checked
  std::int64_t violated = 0;
  std::vector<SweepFailure> failures;  // the first few of the violated ones
  double seconds = 0;                  // of processor time, all threads together
};

struct SweepObserver {
  std::function<void(const std::string& text)> on_progress;  // a few times a second
  std::function<void(const SweepResult& result)> on_result;
};

void run_sweep(const Sweep& sweep, const SweepObserver& observer);

// The roots of a shape that a sweep tries: every one up to 16 ranks or with `every_root`. Above
// that 0, 1, P/2 and P-1 and two near powers of two. {0} if the collective has no root.
std::vector<int> sweep_roots(schedule::Collective collective, int ranks, bool every_root);

// Two choices of blocks with unequal lengths, the same each time: one with some empty blocks, one
// with a single block that is not empty. None if the collective has no blocks.
std::vector<schedule::Blocks> sweep_blocks(schedule::Collective collective, int ranks);

// Distributions of ranks over several hosts, for algorithms that depend on it. Hosts have unequal
// sizes, with ranks that are consecutive or not. Small groups also have pairs, ranks dealt out in
// turn and one rank per host. The same each time.
std::vector<topology::HostMap> sweep_hosts(int ranks);

// The values of each parameter: low, low + 1, low + 2, 4, fallback and the number of ranks, if they
// are in range, or every choice. Small groups have every combination, large ones vary one parameter
// at a time.
std::vector<algorithm::Parameters> sweep_parameters(const algorithm::Algorithm& algorithm,
                                                    int ranks);

}  // namespace unisono::tools
