// SPDX-License-Identifier: BSD-3-Clause
// Axis: places of values on an axis of a picture, and its marks. Pure; any thread.
#pragma once

#include <vector>

namespace unisono::tools {

struct Axis {
  double low = 0, high = 1;
  bool is_log = false;

  // From 0 to the first round mark that is no less than `most`, which is positive.
  static Axis from_zero(double most);

  // The place between its ends, from 0 to 1.
  double share(double value) const;
  // Powers of ten, or equal steps.
  std::vector<double> marks() const;
};

}  // namespace unisono::tools
