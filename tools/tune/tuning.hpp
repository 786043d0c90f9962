// SPDX-License-Identifier: BSD-3-Clause
// Tuning: measures this machine and makes a machine file of it, with fits and their residuals, and
// compares the prices by that file with measured collectives. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/machine.hpp"
#include "tune/copies.hpp"

namespace unisono::tools::tune {

struct TuneOptions {
  bool quick = false;
  // Goes on with the times of a machine that other programs keep busy.
  bool accept_load = false;
  // Also the reduction of 8 bytes over the degrees of the f-nomial tree.
  bool degrees = false;
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

// A collective that was measured, and its price; each call alone, or of calls in a row.
struct Comparison {
  std::string what;
  double measured_ns = 0, plus_minus = 0;
  double predicted_ns = 0;
  int ranks = 0;
  std::int64_t bytes = 0;  // 0: a barrier
  int degree = 0;          // of the f-nomial tree; 0: it has none
};

// Serial reductions and their fit.
struct FittedSerial {
  std::string what;
  std::vector<Comparison> times;  // predicted_ns is the fitted time
};

struct Tuning {
  model::Machine machine;
  std::vector<FitLine> fits;
  std::vector<Comparison> comparisons;
  std::vector<FittedSerial> serial;   // of each engine; they are no part of price_error
  std::vector<CopyTimes> copies;      // of broadcasts, with a core for each rank
  std::vector<Comparison> degrees;    // of the f-nomial tree; they are no part of price_error
  std::vector<std::string> left_out;  // what this machine does not have, and why
  // The parts whose times are not of this process alone, and why. If that is not accepted, these
  // can only be the degrees, which decide nothing in the file.
  std::vector<std::string> disturbed;
};

inline constexpr std::int64_t kDegreeBytes = 8;
// The degrees whose measured, and whose predicted, time is the least; 0 without comparisons.
struct BestDegrees {
  int measured = 0, predicted = 0;
};
BestDegrees best_degrees(const std::vector<Comparison>& degrees);

// By how much prices deviate from measured times: the root of the mean square of the logarithms of
// their ratios, as a ratio less 1. 0 without comparisons.
double price_error(const std::vector<Comparison>& comparisons);

// Measures one part until why_disturbed() says nothing, at most `most` times. `measure` begins
// from what the parts before have left, each time. Returns why the last time was disturbed.
inline constexpr int kAttempts = 3;
struct Attempts {
  std::function<base::Status()> measure;
  std::function<std::string()> why_disturbed;  // of the measurement that has just ended
  std::function<void(const std::string& why)> again;
  int most = kAttempts;
};
base::Result<std::string> measure_undisturbed(const Attempts& attempts);

// The main thread must be the only one, and the library unused. Errors: Code::state if other
// programs keep the machine busy, unless that is accepted.
base::Result<Tuning> tune_machine(const TuneOptions& options);

}  // namespace unisono::tools::tune
