// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the algorithm tests: the schedules of all ranks, and which parameters to try.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "schedule/text.hpp"

namespace unisono::algorithm::test {

inline std::vector<Schedule> build_set(const Algorithm& row, const Shape& shape,
                                       const Parameters& parameters) {
  std::vector<Schedule> set;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto schedule = build(row, shape, parameters, rank);
    if (!schedule.ok()) {
      ADD_FAILURE() << schedule.error().message;
      return {};
    }
    set.push_back(std::move(schedule).value());
  }
  return set;
}

// The fallback values, then each parameter's lowest, some small ones and the highest while the
// others stay at their fallback, each once. Empty if the row cannot do the shape at all.
inline std::vector<Parameters> parameter_choices(const Algorithm& row, const Shape& shape) {
  const Parameters usual = default_parameters(row, shape);
  if (!why_illegal(row, shape, usual).empty()) return {};
  std::vector<Parameters> choices = {usual};
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    for (const int value : {0, 1, 2, 3, 4, 5, shape.ranks - 1, shape.ranks}) {
      Parameters parameters = usual;
      parameters.values[i] = value;
      if (!why_illegal(row, shape, parameters).empty()) continue;
      if (std::ranges::find(choices, parameters) == choices.end()) choices.push_back(parameters);
    }
  }
  return choices;
}

// "allreduce pairwise, 5 ranks, root 0, count 7, ordered"
inline std::string name_of(const Algorithm& row, const Shape& shape, const Parameters& parameters) {
  return std::string(schedule::collective_name(row.collective)) + " " + describe(row, parameters) +
         ", " + std::to_string(shape.ranks) + " ranks, root " + std::to_string(shape.root) + ", " +
         schedule::print_counts(shape) + (shape.ordered ? ", ordered" : "") +
         schedule::print_hosts(shape);
}

}  // namespace unisono::algorithm::test
