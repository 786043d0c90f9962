// SPDX-License-Identifier: BSD-3-Clause
// A sample: what one call takes, from several batches of as many calls as fill a batch's time. The
// median withstands a batch that another program disturbed. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace unisono::tools::tune {

struct Sample {
  double ns = 0;          // the median batch's, of one call
  double plus_minus = 0;  // half the range of all batches: more than 95 % of medians lie in it
};

inline constexpr int kBatches = 7;

Sample summary(std::array<double, kBatches> batches);

// run(n) makes n calls. About `budget_ns` in all.
Sample sample(std::int64_t budget_ns, const std::function<void(std::int64_t calls)>& run);

}  // namespace unisono::tools::tune
