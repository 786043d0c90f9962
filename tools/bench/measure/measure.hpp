// SPDX-License-Identifier: BSD-3-Clause
// The two ways of measuring a cell. All ranks call measure() together; what rank 0 gets back is the
// whole job's result, what the others get is unspecified.
//
//   loop    back to back: one clock around k calls, divided by k; the slowest rank's time; several
//           loops. A rank may run ahead of the others as far as the library lets it.
//   single  each call timed alone with a barrier before it, averaged over the ranks.
//
// Values change with every loop or call and every result is verified, outside the timed part.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "bench/measure/cell.hpp"
#include "bench/measure/place.hpp"
#include "bench/options.hpp"
#include "statistics.hpp"

namespace unisono::tools::bench {

// Times in microseconds.
struct Measurement {
  Summary loop;                 // of one call, over the loops; samples: loops
  std::int64_t loop_calls = 0;  // calls in each loop
  double cpu_us = 0;    // processor time of the caller for one call in the loops, mean over ranks
  double agent_us = 0;  // likewise, of the process's other threads
  Summary single;       // samples: calls
  double single_cpu_us = 0;  // processor time of the caller for one of them, mean over ranks
  std::int64_t wrong = 0;    // elements, or barriers left before all had entered
  std::string algorithm;
  std::string engine;
};

base::Result<Measurement> measure(const Place& place, Cell& cell, const Options& options,
                                  const Subject& subject);

}  // namespace unisono::tools::bench
