// SPDX-License-Identifier: BSD-3-Clause
// Calls of a cell timed one by one, a barrier before each, every result verified. All ranks make
// the same calls. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "bench/measure/cell.hpp"
#include "bench/measure/place.hpp"

namespace unisono::tools::bench {

// This rank's.
struct SingleCalls {
  std::vector<std::int64_t> enter_ns;
  std::vector<std::int64_t> leave_ns;
  // Processor time of this thread in all the calls. Reading its clock is a system call, which may
  // cost more than the call: the shortest reading is subtracted. The times above have no reading.
  std::int64_t cpu_ns = 0;
  std::int64_t wrong = 0;  // elements

  std::vector<double> times_us() const;
  // For one call, mean over the ranks; the same on all of them.
  base::Result<double> mean_cpu_us(const Place& place) const;
};

// `phase` is that of the first call; afterwards that of the next.
base::Result<SingleCalls> call_singly(const Place& place, Cell& cell, std::int64_t calls,
                                      std::int64_t& phase);

}  // namespace unisono::tools::bench
