// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/consistency.hpp"

#include <algorithm>

#include "bench/measure/single_calls.hpp"

namespace unisono::tools::bench {
namespace {

constexpr std::int64_t kCalls = 100'000;
constexpr std::int64_t kWarmup = 100;
constexpr int kTrimmedPercent = 1;
constexpr int kBins = 64;

// In %, of a sorted sample.
double share_near(const std::vector<double>& sample, double mean) {
  const auto low = std::ranges::lower_bound(sample, 0.9 * mean);
  const auto high = std::ranges::upper_bound(sample, 1.1 * mean);
  return sample.empty()
             ? 0
             : 100 * static_cast<double>(high - low) / static_cast<double>(sample.size());
}

base::Result<Finding> measure_consistency(const Place& place, Cell& cell, const Options& options,
                                          const CellShape&) {
  const std::int64_t calls = options.iterations > 0 ? options.iterations : kCalls;
  const std::int64_t warmup = options.warmup >= 0 ? options.warmup : kWarmup;
  std::int64_t phase = 0;
  UNISONO_ASSIGN(const SingleCalls warmed, call_singly(place, cell, warmup, phase));
  UNISONO_ASSIGN(const SingleCalls called, call_singly(place, cell, calls, phase));
  std::vector<double> times = called.times_us();
  UNISONO_TRY(combine(place, times, UNISONO_MAX));
  std::vector<std::int64_t> wrong{warmed.wrong + called.wrong};
  UNISONO_TRY(combine(place, wrong, UNISONO_SUM));
  UNISONO_ASSIGN(const double cpu_us, called.mean_cpu_us(place));
  const std::vector<double> kept = without_highest(std::move(times), kTrimmedPercent);
  const Spread spread = spread_of(kept);
  return Finding{
      {static_cast<double>(calls), spread.mean, spread.deviation, kept[(kept.size() - 1) / 2],
       kept.front(), kept.back(), share_near(kept, spread.mean), cpu_us},
      wrong[0],
      make_histogram(kept, kBins)};
}

}  // namespace

Study consistency_study() {
  return {
      .name = "consistency",
      .notes = {"calls one by one, a barrier before each, the slowest rank's time, in us; "
                "the highest 1 % left out",
                "near: share of the calls within 10 % of the mean, in %",
                "caller: processor time of the calling thread for one call, mean of the ranks, in "
                "us"},
      .columns = {{"calls", "calls", 0},
                  {"mean", "mean_us"},
                  {"deviation", "deviation_us"},
                  {"median", "median_us"},
                  {"min", "min_us"},
                  {"max", "max_us"},
                  {"near", "near_percent", 1},
                  {"caller", "caller_us"}},
      .measure = measure_consistency,
  };
}

}  // namespace unisono::tools::bench
