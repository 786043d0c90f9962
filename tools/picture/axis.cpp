// SPDX-License-Identifier: BSD-3-Clause
#include "picture/axis.hpp"

#include <algorithm>
#include <cmath>

namespace unisono::tools {
namespace {

constexpr int kLinearMarks = 5;

// The least of 1, 2 and 5 times a power of ten that is no less.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= value) return times * power;
  }
  return 10 * power;
}

}  // namespace

Axis Axis::from_zero(double most) {
  constexpr int kSteps = kLinearMarks - 1;
  return {.low = 0, .high = kSteps * round_up(most / kSteps), .is_log = false};
}

double Axis::share(double value) const {
  if (is_log) return std::log(std::max(value, low) / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::vector<double> Axis::marks() const {
  std::vector<double> values;
  if (is_log) {
    for (double each = low; each <= high * 1.001; each *= 10) values.push_back(each);
  } else {
    for (int i = 0; i < kLinearMarks; ++i) {
      values.push_back(low + (high - low) * i / (kLinearMarks - 1));
    }
  }
  return values;
}

}  // namespace unisono::tools
