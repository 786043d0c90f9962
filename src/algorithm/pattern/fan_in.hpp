// SPDX-License-Identifier: BSD-3-Clause
// Fan-in trees (Kini 2003, section 4.1.3): at every level a parent receives at most `fan_in`
// messages, so a level covers fan_in + 1 times as many ranks and ceil(log_{fan_in+1} P) levels
// reach all of them. That is the f-nomial tree of degree fan_in + 1: fan-in 1 gives the binomial
// tree, fan-in >= P - 1 the flat one. Pure; any thread.
#pragma once

#include <algorithm>

#include "algorithm/pattern/fnomial.hpp"

namespace unisono::algorithm::pattern {

// The tree over all ranks; ranks >= 1, fan_in >= 1.
inline FnomialTree fan_in_tree(int ranks, int fan_in, int root = 0) {
  return {ranks, std::min(fan_in, std::max(ranks - 1, 1)) + 1, root};
}

}  // namespace unisono::algorithm::pattern
