// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unisono::tools::bench {

Histogram make_histogram(std::span<const double> sample, int bins) {
  Histogram histogram;
  histogram.counts.resize(static_cast<std::size_t>(bins));
  if (sample.empty()) return histogram;
  const auto [low, high] = std::ranges::minmax(sample);
  histogram.from = low;
  histogram.bin = (high - low) / bins;
  for (const double value : sample) {
    const double place = histogram.bin > 0 ? (value - low) / histogram.bin : 0;
    ++histogram.counts[std::min(static_cast<std::size_t>(place), histogram.counts.size() - 1)];
  }
  return histogram;
}

Spread spread_of(std::span<const double> sample) {
  if (sample.empty()) return {};
  const auto n = static_cast<double>(sample.size());
  const double mean = std::accumulate(sample.begin(), sample.end(), 0.0) / n;
  double squares = 0;
  for (const double value : sample) squares += (value - mean) * (value - mean);
  return {mean, sample.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

std::vector<double> without_highest(std::vector<double> sample, int percent) {
  std::ranges::sort(sample);
  const std::size_t dropped = sample.size() * static_cast<std::size_t>(percent) / 100;
  sample.resize(sample.size() - dropped);
  return sample;
}

}  // namespace unisono::tools::bench
