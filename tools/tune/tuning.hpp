// SPDX-License-Identifier: BSD-3-Clause
// Tuning: measures this machine and makes a machine file of it, with fits and their residuals, and
// compares the prices by that file with measured collectives. Main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/machine.hpp"

namespace unisono::tools::tune {

struct TuneOptions {
  bool quick = false;
  // Called before each part, with its name.
  std::function<void(const std::string& what)> progress = {};
};

// One line of a fit: its data lie so far from it, relative to the data.
struct FitLine {
  std::string what;
  double each_ns = 0, each_plus_minus = 0;
  double per_byte_ns = 0, per_byte_plus_minus = 0;
  double deviation = 0;
};

// A collective that was measured, and its price.
struct Comparison {
  std::string what;
  double measured_ns = 0, plus_minus = 0;
  double predicted_ns = 0;
};

struct Tuning {
  model::Machine machine;
  std::vector<FitLine> fits;
  std::vector<Comparison> comparisons;
  std::vector<std::string> left_out;  // what this machine does not have, and why
};

base::Result<Tuning> tune_machine(const TuneOptions& options);

}  // namespace unisono::tools::tune
