// SPDX-License-Identifier: BSD-3-Clause
#include "model/closed_form/nic_reduce.hpp"

#include <cmath>

#include "base/check.hpp"

namespace unisono::model::nic_reduce {

Parameters parameters_of(const PathParameters& path, arith::Operator op, arith::Type type,
                         std::int64_t bytes) {
  return {.start_up = start_up_ns(path, op),
          .latency = path.latency.ns(),
          .reception = path.reception.ns(bytes),
          .reduction = reduction_ns(path, op, type, bytes)};
}

double serial(const Parameters& p, int ranks) {
  return p.start_up + p.latency + (ranks - 1) * (p.reception + p.reduction);
}

double fnomial_full(const Parameters& p, double ranks, double degree) {
  const double phase = p.latency + (degree - 1) * (p.reception + p.reduction);
  return p.start_up + phase * std::log(ranks) / std::log(degree);
}

double fnomial(const Parameters& p, int ranks, int degree) {
  UNISONO_CHECK(ranks >= 1 && degree >= 2, "a tree of no ranks, or of degree below 2");
  int full_phases = 0;       // floor(log_f P)
  std::int64_t covered = 1;  // f^full_phases
  for (; covered * degree <= ranks; covered *= degree) ++full_phases;
  const bool is_full = covered == ranks;
  const auto last_children = (ranks + covered - 1) / covered - 1;  // ceil(P / covered - 1)
  const double child = p.reception + p.reduction;
  return p.start_up + p.latency * (full_phases + (is_full ? 0 : 1)) +
         child * (degree - 1) * full_phases + child * static_cast<double>(last_children);
}

double optimal_degree(const Parameters& p) {
  const double child = p.reception + p.reduction;
  UNISONO_CHECK(child > 0, "children that cost nothing have no best degree");
  const double right = p.latency / child - 1;
  // The left side rises from -1 at f = 1, so that bisection finds the only solution.
  double low = 1, high = 2;
  while (high * (std::log(high) - 1) < right) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (middle * (std::log(middle) - 1) < right ? low : high) = middle;
  }
  return (low + high) / 2;
}

int best_degree(const Parameters& p, int ranks, int highest) {
  int best = 2;
  for (int degree = 3; degree <= highest; ++degree) {
    if (fnomial(p, ranks, degree) < fnomial(p, ranks, best)) best = degree;
  }
  return best;
}

}  // namespace unisono::model::nic_reduce
