// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.hpp"

#include <algorithm>
#include <numeric>

namespace unisono::tools {

Summary summarize(std::vector<double> sample) {
  Summary summary;
  const std::size_t n = sample.size();
  if (n == 0) return summary;
  std::ranges::sort(sample);
  summary.samples = n;
  summary.minimum = sample.front();
  summary.maximum = sample.back();
  summary.median = (sample[(n - 1) / 2] + sample[n / 2]) / 2;
  summary.p99 = sample[(99 * n + 99) / 100 - 1];
  summary.mean = std::accumulate(sample.begin(), sample.end(), 0.0) / static_cast<double>(n);
  return summary;
}

}  // namespace unisono::tools
