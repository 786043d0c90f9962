// SPDX-License-Identifier: BSD-3-Clause
// How a sample of times is spread: bins of one width from the smallest to the largest, and mean and
// standard deviation. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unisono::tools::bench {

struct Histogram {
  double from = 0;  // where the first bin begins
  double bin = 0;   // the width of each
  std::vector<std::int64_t> counts;
};

// `bins` is at least 1. The largest of the sample is in the last bin.
Histogram make_histogram(std::span<const double> sample, int bins);

struct Spread {
  double mean = 0;
  double deviation = 0;  // of the sample: the sum of squares is divided by its number less one
};

Spread spread_of(std::span<const double> sample);

// The sample in order without the highest `percent` of it, rounded down.
std::vector<double> without_highest(std::vector<double> sample, int percent);

}  // namespace unisono::tools::bench
