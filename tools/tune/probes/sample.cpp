// SPDX-License-Identifier: BSD-3-Clause
#include "tune/probes/sample.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace unisono::tools::tune {

Sample summary(std::array<double, kBatches> batches) {
  std::ranges::sort(batches);
  return {batches[kBatches / 2], (batches.back() - batches.front()) / 2};
}

Sample sample(std::int64_t budget_ns, const std::function<void(std::int64_t calls)>& run) {
  const auto time = [&](std::int64_t calls) {
    const std::int64_t begin = base::now_ns();
    run(calls);
    return base::now_ns() - begin;
  };
  // The first calls warm up, and double until one batch takes its part of the budget.
  const std::int64_t batch_ns = budget_ns / (kBatches + 2);
  std::int64_t calls = 1;
  while (time(calls) < batch_ns / 2) calls *= 2;
  std::array<double, kBatches> each{};
  for (double& ns : each) ns = static_cast<double>(time(calls)) / static_cast<double>(calls);
  return summary(each);
}

}  // namespace unisono::tools::tune
