// SPDX-License-Identifier: BSD-3-Clause
// Calls of a cell timed one by one, a barrier before each, every result verified. All ranks make
// the same calls. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "bench/cell.hpp"
#include "bench/place.hpp"

namespace unisono::tools::bench {

// This rank's.
struct SingleCalls {
  std::vector<std::int64_t> enter_ns;
  std::vector<std::int64_t> leave_ns;
  std::int64_t wrong = 0;  // elements

  std::vector<double> times_us() const;
};

// `phase` is that of the first call; afterwards that of the next.
base::Result<SingleCalls> call_singly(const Place& place, Cell& cell, std::int64_t calls,
                                      std::int64_t& phase);

}  // namespace unisono::tools::bench
