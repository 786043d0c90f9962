// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/algorithm_lookup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace unisono::tools {
namespace {

bool means(std::string_view name, const algorithm::Algorithm& row) {
  return name == row.name || name == schedule::collective_name(row.collective) ||
         name == row_name(row);
}

// " (did you mean ring?)", or nothing.
std::string suggestion(std::string_view name) {
  std::vector<std::string_view> known;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    known.push_back(row.name);
    known.push_back(schedule::collective_name(row.collective));
  }
  // A user who writes collective/name knows the form; the misspelling is then in the last part.
  const std::string_view last = name.substr(name.rfind('/') + 1);
  const std::string_view nearest = base::nearest_name(last, known);
  return nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest);
}

std::string parameter_names(const algorithm::Algorithm& algorithm) {
  if (algorithm.parameters.empty()) return "it has none";
  std::vector<std::string_view> names;
  for (const algorithm::ParameterSpec& spec : algorithm.parameters) names.push_back(spec.name);
  return fmt::format("it has {}", fmt::join(names, ", "));
}

}  // namespace

std::string row_name(const algorithm::Algorithm& algorithm) {
  return fmt::format("{}/{}", schedule::collective_name(algorithm.collective), algorithm.name);
}

base::Result<std::vector<const algorithm::Algorithm*>> find_rows(std::string_view name) {
  std::vector<const algorithm::Algorithm*> rows;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    if (means(name, row)) rows.push_back(&row);
  }
  if (rows.empty()) {
    return base::argument_error(
        fmt::format("no algorithm or collective is named '{}'{}; "
                    "'unisono info --algorithms' lists them",
                    name, suggestion(name)));
  }
  return rows;
}

base::Result<const algorithm::Algorithm*> find_row(std::string_view name) {
  UNISONO_ASSIGN(const std::vector<const algorithm::Algorithm*> rows, find_rows(name));
  if (rows.size() == 1) return rows.front();
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const algorithm::Algorithm* row : rows) names.push_back(row_name(*row));
  return base::argument_error(
      fmt::format("'{}' means several algorithms: say which of {}", name, fmt::join(names, ", ")));
}

base::Result<algorithm::Parameters> parse_parameters(const algorithm::Algorithm& algorithm,
                                                     const schedule::Shape& shape,
                                                     const std::vector<std::string>& assignments) {
  algorithm::Parameters parameters = algorithm::default_parameters(algorithm, shape);
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    const std::string name = assignment.substr(0, equals);
    const auto spec =
        std::ranges::find(algorithm.parameters, name, &algorithm::ParameterSpec::name);
    if (spec == algorithm.parameters.end()) {
      return base::argument_error(fmt::format("{} has no parameter '{}': {}", row_name(algorithm),
                                              name, parameter_names(algorithm)));
    }
    const auto value =
        equals == std::string::npos
            ? std::nullopt
            : algorithm::read_value(*spec, std::string_view(assignment).substr(equals + 1));
    if (!value) {
      return base::argument_error(fmt::format("'{}' sets no value: write {}={}", assignment, name,
                                              algorithm::print_value(*spec, spec->fallback)));
    }
    const auto index = static_cast<std::size_t>(spec - algorithm.parameters.begin());
    parameters.values[index] = *value;
  }
  return parameters;
}

}  // namespace unisono::tools
