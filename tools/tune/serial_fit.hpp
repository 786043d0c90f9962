// SPDX-License-Identifier: BSD-3-Clause
// The fit of measured serial reductions to their closed form (Moody et al., SC 2003, equation 1):
// T = C + L + (P - 1) (r + c), with r + c = a + b m. Serial reductions alone tell neither C from L
// nor r from c. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "model/fit.hpp"

namespace unisono::tools::tune {

struct SerialTime {
  int ranks = 2;
  std::int64_t bytes = 8;
  double ns = 0;
};

struct SerialFit {
  model::Estimate start_up_and_latency;  // C + L
  model::Estimate each, per_byte;        // a and b: receiving and combining a message
  model::Fit fit;                        // its residuals are those of the times

  double ns(int ranks, std::int64_t bytes) const;
};

// Errors: fewer than four times, or all of one number of ranks or of one size.
base::Result<SerialFit> fit_serial(std::span<const SerialTime> times);

}  // namespace unisono::tools::tune
