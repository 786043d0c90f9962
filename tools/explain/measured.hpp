// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a job measured of calls like one that is explained, by their profiles. It reads
// files; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/call.hpp"

namespace unisono::tools {

struct MeasuredCalls {
  std::string algorithm;  // with its parameters
  std::string engine;
  std::int64_t calls = 0;  // of all ranks
  double mean_ns = 0;
};

// The blocking calls of the same collective, operator and size class on as many ranks and hosts,
// fastest first. Reductions have the same type, too. Calls that another library did are left out.
base::Result<std::vector<MeasuredCalls>> find_measured(const std::vector<std::string>& files,
                                                       const plan::Call& call, int ranks,
                                                       int hosts);

}  // namespace unisono::tools
