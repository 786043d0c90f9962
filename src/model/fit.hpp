// SPDX-License-Identifier: BSD-3-Clause
// Fit: parameters of the model from measured times, by linear least squares. A time is a sum of
// parameters, each counted as often as its factor says. Weights are relative: a long time may
// deviate by more than a short one. Parameters are times and never negative. Control path; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace unisono::model {

struct Observation {
  std::vector<double> factors;  // one a parameter
  double ns = 0;                // measured; more than 0
  double known_ns = 0;          // the part of it that no parameter has to explain
};

struct Estimate {
  double value = 0;
  double plus_minus = 0;  // half the width of the 95 % interval
};

struct Fit {
  std::vector<Estimate> parameters;
  std::vector<double> residuals;  // measured less fitted, relative to measured; one an observation
  double deviation = 0;           // root of their mean square, by degrees of freedom
};

// Errors: Code::argument if there are not more observations than parameters, or if they cannot tell
// the parameters apart.
base::Result<Fit> fit_linear(std::span<const Observation> observations);

// A measured time and its prediction from parameters: a price, which is linear in pieces.
struct PredictedTime {
  std::function<double(std::span<const double> parameters)> predict;
  double ns = 0;
};
// Starts at parameters and repeats linear fits until they no longer improve. Errors: as
// fit_linear(); a parameter that no prediction depends on near `start` cannot be told apart.
base::Result<Fit> fit_predictions(std::span<const PredictedTime> times, std::vector<double> start);

// A line through times by size: what each message costs, and each byte.
struct LineTime {
  std::int64_t bytes = 0;
  double ns = 0;
};
struct LineFit {
  Estimate each, per_byte;
  Fit fit;
};
base::Result<LineFit> fit_line(std::span<const LineTime> times);

}  // namespace unisono::model
