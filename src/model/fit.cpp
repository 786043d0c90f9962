// SPDX-License-Identifier: BSD-3-Clause
#include "model/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace unisono::model {
namespace {

using Matrix = std::vector<std::vector<double>>;  // columns

// The quantile of Student's distribution, two-sided 95 %.
double student_95(std::size_t freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120};
  if (freedom <= kTable.size()) return kTable[freedom - 1];
  return 1.96 + 2.5 / static_cast<double>(freedom);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// QR by Gram-Schmidt, twice for accuracy. Columns have length 1 before, so that a short rest means
// a column that depends on the others.
constexpr double kDependent = 1e-9;

struct Solution {
  std::vector<double> values, variances;  // variances by that of an observation
};

base::Result<Solution> solve(const Matrix& columns, const std::vector<double>& right) {
  const std::size_t n = columns.size();
  Matrix q;
  Matrix r(n, std::vector<double>(n, 0.0));  // r[i][j], i <= j
  std::vector<double> scale(n);
  for (std::size_t j = 0; j < n; ++j) {
    std::vector<double> column = columns[j];
    scale[j] = std::sqrt(dot(column, column));
    if (scale[j] == 0) {
      return base::Error{base::Code::argument, fmt::format("no observation has parameter {}", j)};
    }
    for (double& each : column) each /= scale[j];
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i < j; ++i) {
        const double share = dot(q[i], column);
        r[i][j] += share;
        for (std::size_t k = 0; k < column.size(); ++k) column[k] -= share * q[i][k];
      }
    }
    r[j][j] = std::sqrt(dot(column, column));
    if (r[j][j] < kDependent) {
      return base::Error{
          base::Code::argument,
          fmt::format("the observations do not tell parameter {} from those before", j)};
    }
    for (double& each : column) each /= r[j][j];
    q.push_back(std::move(column));
  }
  Solution solution{std::vector<double>(n), std::vector<double>(n, 0.0)};
  // Back substitution for the values, and for the rows of the inverse of R.
  for (std::size_t j = n; j-- > 0;) {
    double value = dot(q[j], right);
    for (std::size_t k = j + 1; k < n; ++k) value -= r[j][k] * solution.values[k];
    solution.values[j] = value / r[j][j];
  }
  for (std::size_t column = 0; column < n; ++column) {
    std::vector<double> inverse(n, 0.0);
    for (std::size_t j = column + 1; j-- > 0;) {
      double value = j == column ? 1 : 0;
      for (std::size_t k = j + 1; k <= column; ++k) value -= r[j][k] * inverse[k];
      inverse[j] = value / r[j][j];
      solution.variances[j] += inverse[j] * inverse[j];
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    solution.values[j] /= scale[j];
    solution.variances[j] /= scale[j] * scale[j];
  }
  return solution;
}

// Each row divided by its time, so that all weigh alike.
Matrix weighted_columns(std::span<const Observation> observations,
                        const std::vector<std::size_t>& used) {
  Matrix columns;
  for (const std::size_t parameter : used) {
    std::vector<double>& column = columns.emplace_back();
    for (const Observation& each : observations) {
      column.push_back(each.factors[parameter] / each.ns);
    }
  }
  return columns;
}

base::Status check(std::span<const Observation> observations) {
  const std::size_t parameters = observations.empty() ? 1 : observations.front().factors.size();
  if (observations.size() <= parameters) {
    return base::Error{base::Code::argument,
                       fmt::format("{} observations cannot give {} parameters and their intervals",
                                   observations.size(), parameters)};
  }
  for (const Observation& each : observations) {
    if (each.factors.size() != parameters || !(each.ns > 0) || !std::isfinite(each.ns)) {
      return base::Error{base::Code::argument, "an observation is no positive time"};
    }
  }
  return base::success();
}

// Prices are linear in pieces: a few rounds find the piece of the best parameters.
constexpr int kMostRounds = 30, kMostHalvings = 12;
// The step of a parameter, relative to it. It has to stay in the piece.
constexpr double kSmallStep = 1e-4;

Observation linear_near(const PredictedTime& time, const std::vector<double>& at) {
  Observation linear{{}, time.ns, time.predict(at)};
  const double here = linear.known_ns;
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<double> near = at;
    const double step = kSmallStep * std::max(at[i], 1.0);
    near[i] += step;
    linear.factors.push_back((time.predict(near) - here) / step);
    linear.known_ns -= linear.factors.back() * at[i];
  }
  return linear;
}

double squares_at(std::span<const PredictedTime> times, const std::vector<double>& at) {
  double squares = 0;
  for (const PredictedTime& each : times) {
    const double residual = (each.ns - each.predict(at)) / each.ns;
    squares += residual * residual;
  }
  return squares;
}

// The parameters on the way from `from` to `to` that are better than `best`, which they replace;
// empty if there are none.
std::vector<double> improve(std::span<const PredictedTime> times, const std::vector<double>& from,
                            const std::vector<Estimate>& to, double& best) {
  double share = 1;
  for (int i = 0; i < kMostHalvings; ++i, share /= 2) {
    std::vector<double> between = from;
    for (std::size_t k = 0; k < from.size(); ++k) between[k] += share * (to[k].value - from[k]);
    const double squares = squares_at(times, between);
    if (squares >= best * (1 - 1e-9)) continue;
    best = squares;
    return between;
  }
  return {};
}

}  // namespace

base::Result<Fit> fit_linear(std::span<const Observation> observations) {
  UNISONO_TRY(check(observations));
  const std::size_t count = observations.front().factors.size();
  std::vector<std::size_t> used(count);
  for (std::size_t i = 0; i < count; ++i) used[i] = i;
  std::vector<double> shares;  // of the measured time, that the parameters explain
  for (const Observation& each : observations) shares.push_back(1 - each.known_ns / each.ns);
  Solution solution;
  // The most negative parameter is 0, and the others are fitted without it.
  while (!used.empty()) {
    UNISONO_ASSIGN(solution, solve(weighted_columns(observations, used), shares));
    const auto lowest = std::ranges::min_element(solution.values);
    if (*lowest >= 0) break;
    used.erase(used.begin() + (lowest - solution.values.begin()));
  }
  Fit fit;
  fit.parameters.resize(count);
  for (std::size_t i = 0; i < used.size(); ++i) {
    fit.parameters[used[i]].value = solution.values[i];
  }
  double squares = 0;
  for (const Observation& each : observations) {
    double fitted = each.known_ns;
    for (std::size_t i = 0; i < count; ++i) fitted += each.factors[i] * fit.parameters[i].value;
    fit.residuals.push_back((each.ns - fitted) / each.ns);
    squares += fit.residuals.back() * fit.residuals.back();
  }
  const std::size_t freedom = observations.size() - used.size();
  fit.deviation = std::sqrt(squares / static_cast<double>(freedom));
  for (std::size_t i = 0; i < used.size(); ++i) {
    fit.parameters[used[i]].plus_minus =
        student_95(freedom) * fit.deviation * std::sqrt(solution.variances[i]);
  }
  return fit;
}

base::Result<Fit> fit_predictions(std::span<const PredictedTime> times, std::vector<double> start) {
  double best = squares_at(times, start);
  Fit fit;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<Observation> linear;
    for (const PredictedTime& each : times) linear.push_back(linear_near(each, start));
    UNISONO_ASSIGN(fit, fit_linear(linear));
    std::vector<double> better = improve(times, start, fit.parameters, best);
    if (better.empty()) break;
    start = std::move(better);
  }
  // The intervals are those of the last piece; residuals are those of the parameters themselves.
  const std::size_t freedom = times.size() - start.size();
  fit.residuals.clear();
  for (const PredictedTime& each : times) {
    fit.residuals.push_back((each.ns - each.predict(start)) / each.ns);
  }
  fit.deviation = std::sqrt(best / static_cast<double>(freedom));
  for (std::size_t i = 0; i < start.size(); ++i) fit.parameters[i].value = start[i];
  return fit;
}

base::Result<LineFit> fit_line(std::span<const LineTime> times) {
  std::vector<Observation> observations;
  for (const LineTime& time : times) {
    observations.push_back({{1, static_cast<double>(time.bytes)}, time.ns});
  }
  LineFit result;
  UNISONO_ASSIGN(result.fit, fit_linear(observations));
  result.each = result.fit.parameters[0];
  result.per_byte = result.fit.parameters[1];
  return result;
}

}  // namespace unisono::model
