// SPDX-License-Identifier: BSD-3-Clause
// Robust statistics of a sample of times. Percentiles are by the nearest rank, so that each is a
// value that was measured: p99 of 100 samples is the 99th smallest. Any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::tools {

// All values have the unit of the sample.
struct Summary {
  std::size_t samples = 0;
  double minimum = 0;
  double median = 0;  // mean of the middle two where their number is even
  double p99 = 0;
  double maximum = 0;
  double mean = 0;
};

// All zero for an empty sample.
Summary summarize(std::vector<double> sample);

}  // namespace unisono::tools
